"""The job of `crash_job` with so many lanes that each is written as a part."""

from __future__ import annotations

import sys
from pathlib import Path

from midstream.model.manifest import MOST_INSIDE
from tests.spark import crash_job

LANES = MOST_INSIDE + 2


def main(root: Path) -> None:
    """Run the job to its end."""
    crash_job.main(root, LANES)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
