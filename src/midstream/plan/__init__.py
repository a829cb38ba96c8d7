"""The room `plan`."""
