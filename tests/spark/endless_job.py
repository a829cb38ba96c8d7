"""The job that is killed at random: `python -m tests.spark.endless_job ROOT KEPT [--once] [--take-over]`.

Its input is in the folder ROOT, its checkpoint and its answers are below KEPT, a folder or a URL. It runs until it is
stopped or, with `--once`, until its input is used up. Rows come in order of time, so that no cut of them into steps
makes one late.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

import midstream as ms
from midstream.spark.session import local_session
from tests.crash_case import CHAIN, GROUPED
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.property.rows import Shape, draw_rows
from tests.spark.drive import SHORT_LIVED, Place
from tests.spark.endless_queries import FIRST, TEXTS, rates
from tests.spark.other_sinks import other_sinks

SPAN, ROWS = 90, 700


def shape(seed: int) -> Shape:
    """Rows of three streams."""
    return Shape(seed=seed, sizes=(ROWS, ROWS, ROWS), span=SPAN, keys=6)


def streams() -> tuple[StreamSpec, ...]:
    """The streams, which are the same for every seed."""
    return draw_rows(Shape(seed=0, sizes=(1, 1, 1), span=1))[0]


RECENT = QuerySpec(
    (SourceSpec("A", "A", range=2 * SECOND), SourceSpec("C", "C", rows=15)),
    (Item("A.u", "a"), Item("C.u", "c")),
    (Condition("A.k = C.k", ("A", "C")),),
)
RING = QuerySpec(
    tuple(SourceSpec(name, name, range=2 * SECOND) for name in "ABC"),
    (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c")),
    (Condition("A.k - B.k BETWEEN 0 AND 1", ("A", "B")), Condition("B.n < C.n", ("B", "C"))),
)
QUERIES = {"chain": CHAIN, "counts": GROUPED, "recent": RECENT, "ring": RING}
"""Those that run for ever; others come and go beside them."""


def the_job(spark: SparkSession, root: Path, kept: str) -> ms.Job:
    """The job, the same whenever it is started."""
    found = ms.Job(spark, f"{kept}/checkpoint", 2, patience="2 minutes")
    for spec in streams():
        frame = Place(root).frame(spark, spec)
        timing = {"lateness": spec.lateness, "idle_timeout": spec.idle_timeout, "unit": spec.unit}
        found.stream(spec.name, frame, timestamp=spec.timestamp, **timing)
    for name, spec in QUERIES.items():
        plan = "((A B) C)" if name == "chain" else None
        spread = "psp_d" if name == "ring" else None
        found.query(name, spec.cql(), plan, ms.sinks.files(f"{kept}/answers/{name}"), spread=spread)
    found.table("rates", rates(FIRST))
    for name, text in TEXTS.items():
        found.query(name, text, sink=ms.sinks.files(f"{kept}/answers/{name}"))
    for name, sink in other_sinks(root).items():
        found.query(name, RECENT.cql(), sink=sink)
    return found


def main(root: Path, kept: str, once: bool, take_over: bool) -> None:
    """Run the job."""
    trigger = {"availableNow": True} if once else {"processingTime": "0 seconds"}
    run = the_job(local_session("endless", settings=SHORT_LIVED), root, kept).start(trigger, take_over=take_over)
    stops: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        stops.append(number)

    signal.signal(signal.SIGTERM, stop)
    print("started", flush=True)
    while not run.await_termination(0.1):
        if stops:
            run.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "--once" in sys.argv, "--take-over" in sys.argv)
