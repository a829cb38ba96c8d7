"""A migration under way: tasks, transitions, the mixture of plans, and what several strategies need for it."""
