"""A page in the browser that shows how jobs stand: their plans, decisions, steps, and what is being changed.

In: checkpoints, read as anyone may read them, and commands of those who have the token. Out: JSON values and the page.
"""
