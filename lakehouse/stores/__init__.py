"""How tables are written and read: the contract, delta-rs, delta-spark, and the fences."""
