"""How near the sizes of joins that nobody ran are to the true ones: `python -m benchmarks.estimates`."""
