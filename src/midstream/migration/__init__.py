"""Carrying a running query from plan to plan: the contract, and one file per strategy."""
