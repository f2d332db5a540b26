"""The second bookkeepers: DuckDB's recounts, and checks of profiles."""
