"""The job whose queries read each other's answers and are spread over nodes: `python -m tests.spark.spread_levels_job
FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.commands.spread import Spread
from midstream.spark.driver import Driver
from midstream.spark.session import local_session
from tests.oracle.answer import Answer
from tests.oracle.arrival import Lifetime, arrive
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.rows import Shape, cut, draw_rows
from tests.property.test_answers_as_streams import TIMED, Expected, equal
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, job

STREAMS, ROWS = draw_rows(Shape(seed=3, sizes=(50, 50, 40), span=12, keys=3, disorder=2, slack=1))
STEPS = cut(STREAMS, ROWS, (40, 60, 80, 95))


def _items(first: str, second: str) -> tuple[Item, ...]:
    return Item(f"{first}.k", "k"), Item(f"{second}.n", "n"), Item(f"{first}.u + {second}.u", "u"), TIMED


QUERIES = {
    "pairs": QuerySpec(
        (SourceSpec("A", "A", 2 * SECOND), SourceSpec("B", "B", 2 * SECOND)),
        _items("A", "B"),
        (Condition("A.n < B.n", ("A", "B")),),
    ),
    "near": QuerySpec(
        (SourceSpec("Q", "pairs", 2 * SECOND), SourceSpec("C", "C", SECOND)),
        _items("Q", "C"),
        (equal("Q", "C"), Condition("Q.u <> C.u", ("Q", "C"))),
    ),
    "counted": QuerySpec(
        (SourceSpec("N", "near", 2 * SECOND),),
        (Item("N.k", "k"), Item("COUNT(*)", "n"), Item("MAX(N.u)", "u"), TIMED),
        (),
        ("N.k",),
        every=2 * SECOND,
    ),
    "threes": QuerySpec(
        (SourceSpec("N", "near", SECOND), SourceSpec("C", "C", SECOND), SourceSpec("B", "B", SECOND)),
        _items("N", "B"),
        (equal("N", "C"), Condition("C.n < B.n", ("C", "B"))),
    ),
}
SPREADS = {"pairs": "psp", "near": "psp_d", "threes": "psp_i"}
CHANGES: Mapping[int, tuple[Spread, ...]] = {
    2: (Spread("near", "off"), Spread("threes", "psp_d", 3, {"relocation": "aggressive"})),
    3: (
        Spread("near", "hash_hops", 3),
        Spread("pairs", "off"),
        Spread("threes", "psp_d", 2, {"relocation": "passive"}),
    ),
}
"""What happens to the queries with a step."""


def expected() -> dict[str, Answer]:
    """The oracle's answers, those of queries over the others' answers too."""
    lives = [Lifetime(name, spec) for name, spec in QUERIES.items()]
    oracle = Expected(STREAMS, arrive(STREAMS, STEPS, lives[:1]))
    return {life.name: oracle.of(life) for life in lives}


feed = partial(feed_steps, STREAMS, STEPS)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    place = Place(root)
    made = job(spark, place, STREAMS, {}, lanes=2)
    for name, spec in QUERIES.items():
        asked = {"spread": SPREADS[name], "nodes": 2} if name in SPREADS else {}
        made.query(name, spec.cql(), None, ms.sinks.files(place.answers(name)), **asked)
    return made


def main(root: Path) -> None:
    """Run the job to its end, with what happens to its queries."""
    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        known = [command for _, command in log.after(0)]
        for command in CHANGES.get(number, ()):
            if command not in known:
                log.append(command)
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    finish(the_job(local_session("levels", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
