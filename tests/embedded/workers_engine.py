"""The engine of `crash_engine` whose lanes run in worker processes, however few rows they have.

`python -m tests.embedded.workers_engine FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from midstream.embedded import processes
from tests.embedded import crash_engine

WORKERS = 2


def main(root: Path | str) -> None:
    """Push to the end."""
    processes.LEAST_ROWS = 0
    crash_engine.main(root, workers=WORKERS)


if __name__ == "__main__":
    main(sys.argv[1])
