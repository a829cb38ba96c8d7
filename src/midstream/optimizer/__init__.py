"""Live figures of queries and what plans and migrations would cost by them."""
