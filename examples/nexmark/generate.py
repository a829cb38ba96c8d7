"""NEXMark's streams as Parquet files: `python examples/nexmark/generate.py [EVENTS] [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from midstream.demo.nexmark import write

if __name__ == "__main__":
    events, folder = [*sys.argv[1:], "100000", "nexmark"][:2] if len(sys.argv) != 2 else (sys.argv[1], "nexmark")
    write(Path(folder), int(events))
