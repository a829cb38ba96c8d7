"""The embedded engine on a checkpoint."""
