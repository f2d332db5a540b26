"""The mechanics of a run: what it knows, its pin, its commit, what is stale, what is compacted."""
