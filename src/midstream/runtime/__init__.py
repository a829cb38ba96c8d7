"""What runs a step on a lane: the lane itself, the contracts of operators and results, watermarks and lane keys."""
