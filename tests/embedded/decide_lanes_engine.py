"""An engine on a checkpoint that sets its number of lanes: `python -m tests.embedded.decide_lanes_engine FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import midstream as ms
from tests.optimizer.drifting import COLUMNS, query, rows

KEYS = {"A": 40, "B": 40, "C": 40}
SETTINGS = {"mode": "off", "lanes": "auto", "review": "2 seconds"}
LATE = {"took": 1.6, "interval": 1.0}
WORKERS = 4
STEPS = 16


def the_engine(root: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "checkpoint", threads=WORKERS)
    for name in "ABC":
        engine.create_stream(name, COLUMNS, timestamp="ts")
    engine.add_query("q", query("ABC", window=3), sink=ms.sinks.files(root / "answers"))
    return engine


def main(root: Path, steps: int = STEPS) -> None:
    """Every push is late by what its caller says, whatever time it takes here."""
    with the_engine(root) as engine:
        if engine.manifest.step < 0:
            engine.optimize(**SETTINGS)  # type: ignore[arg-type]
        for number in range(engine.manifest.step + 1, steps):
            engine.push(rows(number, KEYS, rate=20), **LATE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
