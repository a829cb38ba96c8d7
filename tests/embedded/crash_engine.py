"""An engine on a checkpoint in a process of its own: `python -m tests.embedded.crash_engine FOLDER_OR_URL`.

It pushes what the checkpoint has not taken yet, as a caller does that goes by the number of the newest step.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import midstream as ms
from midstream.storage.memory_limit import MemoryLimit
from tests.crash_case import PLANS, STREAMS, crash_case
from tests.oracle.arrival import Lifetime

LANES = crash_case(20, 40, 60, 80)
CASE = replace(LANES, queries=(*LANES.queries, Lifetime("spread", LANES.queries[0].spec)))
"""The chain of joins once more, spread over nodes."""


def the_engine(
    root: Path | str, lanes: int = 2, threads: int | None = None, workers: int | None = None, **options: bool
) -> ms.Engine:
    """The engine, the same whenever it is opened."""
    # Near a limit every chunk is mapped as soon as it is written.
    memory = MemoryLimit(1).held() + (64 << 20) if "CRASH_LIMITED" in os.environ else None
    engine = ms.Engine(
        lanes=lanes, threads=threads, workers=workers, checkpoint=f"{root}/checkpoint", memory=memory, **options
    )
    for spec in STREAMS:
        engine.create_stream(
            spec.name,
            spec.schema,
            spec.timestamp,
            lateness=spec.lateness,
            idle_timeout=spec.idle_timeout,
            unit=spec.unit,
        )
    for life in CASE.queries:
        sink = ms.sinks.files(f"{root}/answers/{life.name}")
        over = {"spread": "psp"} if life.name == "spread" else {}
        engine.add_query(life.name, life.spec.cql(), {"chain": PLANS[0]}.get(life.name), sink, **over)
    return engine


def main(root: Path | str, lanes: int = 2, threads: int | None = None, workers: int | None = None) -> None:
    """Push to the end; step 1 begins a migration and another spread, step 2 a rescale, step 3 ends the spread."""
    with the_engine(root, lanes, threads, workers) as engine:
        for number in range(engine.manifest.step + 1, len(CASE.steps)):
            waiting = {command.kind for command in engine.manifest.pending}
            if number == 1 and "migrate" not in waiting:
                engine.migrate("chain", PLANS[1], "hybmig")
            if number in (1, 3) and "spread" not in waiting:
                engine.spread("spread", *(("hash_hops", 3) if number == 1 else ("off",)))
            if number == 2 and "rescale" not in waiting:
                engine.rescale(lanes + 1)
            engine.push(dict(CASE.steps[number]))


if __name__ == "__main__":
    main(sys.argv[1])
