"""An engine on a checkpoint in a process of its own: `python -m tests.embedded.crash_engine FOLDER_OR_URL`.

It pushes what the checkpoint has not taken yet, as a caller does that goes by the number of the newest step.
"""

from __future__ import annotations

import sys
from pathlib import Path

import midstream as ms
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows

SHAPE = Shape(seed=11, sizes=(120, 120, 120), span=24, keys=5, disorder=2, slack=1)
PLANS = ("((A B) C)", "(A (B C))")
CHAIN = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "ABC"),
    (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
GROUPED = QuerySpec(
    (SourceSpec("A", "A", range=3 * SECOND), SourceSpec("B", "B", range=3 * SECOND)),
    (Item("COUNT(*)", "n"), Item("_ts")),
    (Condition("A.n < B.n", ("A", "B")),),
    every=2 * SECOND,
)
STREAMS, ROWS = draw_rows(SHAPE)
CASE = Case(STREAMS, cut(STREAMS, ROWS, (20, 40, 60, 80)), (Lifetime("chain", CHAIN), Lifetime("counts", GROUPED)))


def the_engine(root: Path | str, **options: bool) -> ms.Engine:
    """The engine, the same whenever it is opened."""
    engine = ms.Engine(lanes=2, checkpoint=f"{root}/checkpoint", **options)
    for spec in STREAMS:
        engine.create_stream(
            spec.name, spec.schema, spec.timestamp, lateness=spec.lateness, idle_timeout=spec.idle_timeout
        )
    for life in CASE.queries:
        sink = ms.sinks.files(f"{root}/answers/{life.name}")
        engine.add_query(life.name, life.spec.cql(), {"chain": PLANS[0]}.get(life.name), sink)
    return engine


def main(root: Path | str) -> None:
    """Push to the end; step 1 begins a migration, step 2 a rescale."""
    with the_engine(root) as engine:
        for number in range(engine.manifest.step + 1, len(CASE.steps)):
            waiting = {command.kind for command in engine.manifest.pending}
            if number == 1 and "migrate" not in waiting:
                engine.migrate("chain", PLANS[1], "hybmig")
            if number == 2 and "rescale" not in waiting:
                engine.rescale(3)
            engine.push(dict(CASE.steps[number]))


if __name__ == "__main__":
    main(sys.argv[1])
