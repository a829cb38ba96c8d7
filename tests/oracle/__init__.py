"""The oracle: what the whole answer must be, computed from scratch with DuckDB. It knows nothing of midstream."""
