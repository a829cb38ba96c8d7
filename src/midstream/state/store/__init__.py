"""Where chunks are kept: in memory or as files."""
