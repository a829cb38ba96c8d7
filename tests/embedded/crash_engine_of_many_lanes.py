"""The engine of `crash_engine` with so many lanes that each is written as a part."""

from __future__ import annotations

import sys
from pathlib import Path

from midstream.model.manifest import MOST_INSIDE
from tests.embedded import crash_engine

LANES = MOST_INSIDE + 2


def main(root: Path | str) -> None:
    """Push to the end."""
    crash_engine.main(root, LANES, threads=LANES + 1)


if __name__ == "__main__":
    main(sys.argv[1])
