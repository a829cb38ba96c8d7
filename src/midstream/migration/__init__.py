"""Carrying a running query from plan to plan: the contract of a strategy, and one file for each.

In: what runs now (a `Box`), the plan to go to, and the lane with its states. Out: the box that runs from this step on,
which may be a migration under way and is stored with the manifest until it is over.
"""
