"""The ways of sharing a chain, one file each."""
