"""Write NEXMark's streams as Parquet files: `python examples/nexmark/generate.py [EVENTS] [FOLDER]`.

Without a folder they go to `nexmark` beside this file, where the job files look for them.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from midstream.demo.nexmark import write

if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", nargs="?", type=int, default=100_000)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "nexmark")
    given = parser.parse_args()
    write(given.folder, given.events)
