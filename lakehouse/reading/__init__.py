"""What analysts read: DuckDB's views of the lake, and its macros."""
