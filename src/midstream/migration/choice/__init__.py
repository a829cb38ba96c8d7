"""Choosing a strategy: live figures, predictions, the chooser."""
