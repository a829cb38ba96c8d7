"""Checkpoints that earlier code wrote, kept as files: the present code takes them up and goes on exact."""
