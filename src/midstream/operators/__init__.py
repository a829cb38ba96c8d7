"""The room `operators`."""
