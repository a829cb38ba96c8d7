"""Draws the pictures of docs/architecture.md: `python -m docs.drawing [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.drawing import rooms, way

FOLDER = Path(__file__).resolve().parent.parent / "pictures"
PICTURES = {"rooms.svg": rooms.draw, "way.svg": way.draw}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")
