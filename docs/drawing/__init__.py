"""The pictures of the page on architecture, drawn from the code: `python -m docs.drawing`."""
