"""What other packages add, through the public contracts only."""
