"""State-slice sharing: queries over the same join answered from one chain of sliced states (Wang Part I)."""
