"""An engine whose rings get nodes and lose them, in a process of its own: `python -m tests.embedded.relocation_engine
FOLDER`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import midstream as ms
from tests.crash_case import CHAIN, STREAMS, crash_case
from tests.oracle.arrival import Lifetime
from tests.property.drive import Case, start

CASE = Case(
    STREAMS,
    crash_case(10, 20, 30, 40, 50, 60, 70, 80, 90).steps,
    tuple(Lifetime(name, CHAIN) for name in ("d", "aged")),
)
SCHEMES = {"d": "psp_d", "aged": "psp"}
CHANGES: dict[int, dict[str, tuple[int, str]]] = {
    2: {"d": (5, "passive"), "aged": (5, "aggressive")},
    3: {"d": (2, "aggressive"), "aged": (2, "passive")},
    5: {"d": (6, "passive"), "aged": (4, "passive")},
}
"""By step how many nodes there are from then on, and how they come or go."""


def main(root: Path | str) -> None:
    """Push what the checkpoint has not taken yet."""
    with start(STREAMS, checkpoint=f"{root}/checkpoint") as engine:
        for life in CASE.queries:
            sink = ms.sinks.files(f"{root}/answers/{life.name}")
            options = bounded(life.name)
            engine.add_query(
                life.name, life.spec.cql(), sink=sink, spread=SCHEMES[life.name], nodes=3, spread_options=options
            )
        for number in range(engine.manifest.step + 1, len(CASE.steps)):
            waiting = {getattr(command, "query", "") for command in engine.manifest.pending}
            for name, (nodes, way) in CHANGES.get(number, {}).items():
                if name not in waiting:
                    engine.spread(name, SCHEMES[name], nodes, relocation=way, **bounded(name))
            engine.push(dict(CASE.steps[number]))


def bounded(name: str) -> dict[str, Any]:
    """Few rows in a slice, where slices are bounded."""
    return {"count_bound": 6} if name == "d" else {}


if __name__ == "__main__":
    main(sys.argv[1])
