"""What it costs to spread a join over nodes, and how even the work is."""
