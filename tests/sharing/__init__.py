"""Sets of queries over the same streams that come, go and change, each compared with the oracle step by step."""
