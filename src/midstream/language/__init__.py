"""The room `language`."""
