"""The batch layer: what a night makes, what a close makes, and how both are run."""
