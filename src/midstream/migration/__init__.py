"""The room `migration`."""
