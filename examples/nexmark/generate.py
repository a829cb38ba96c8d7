"""NEXMark's streams as Parquet files: `python examples/nexmark/generate.py [EVENTS] [FOLDER]`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from midstream.demo.nexmark import write

if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("events", nargs="?", type=int, default=100_000)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("nexmark"))
    given = parser.parse_args()
    write(given.folder, given.events)
