"""The room `cli`."""
