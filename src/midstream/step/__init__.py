"""The room `step`."""
