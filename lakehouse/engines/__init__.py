"""What computes: the contract, Sail, Spark, a remote Spark, and what they need to run."""
