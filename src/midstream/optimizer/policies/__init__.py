"""The policies: when a query moves to another plan, and to which; one file each, found by looking."""
