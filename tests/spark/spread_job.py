"""The job with queries over nodes that is killed amid its steps: `python -m tests.spark.spread_job FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.commands.spread import Spread
from midstream.spark.session import local_session
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, job

STREAMS, ROWS = draw_rows(Shape(seed=7, sizes=(90, 90, 90), span=24, keys=6, disorder=2, slack=1))


def _join(window: int, *conditions: tuple[str, str]) -> QuerySpec:
    sources = tuple(SourceSpec(name, name, range=window * SECOND) for name in "ABC")
    items = (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c"))
    return QuerySpec(sources, items, tuple(Condition(text, tuple(names)) for text, names in conditions))


TWO_KEYS = _join(4, ("A.k = B.k", "AB"), ("B.n = C.n", "BC"))
NEAR_KEYS = _join(2, ("A.k = B.k", "AB"), ("B.n = C.n", "BC"), ("A.n > 0", "A"))
BAND = _join(3, ("A.k - B.k BETWEEN -1 AND 1", "AB"), ("B.k - C.k BETWEEN 0 AND 1", "BC"))
THETA = _join(2, ("A.n < B.n", "AB"), ("B.k <> C.k", "BC"))
WIDE_BAND = _join(5, ("A.k - B.k BETWEEN -1 AND 1", "AB"), ("B.k - C.k BETWEEN 0 AND 1", "BC"), ("B.n > 1", "B"))
ONE_KEY = _join(3, ("A.k = B.k", "AB"), ("B.k = C.k", "BC"))

JOINS = {
    "one_lane": THETA, "lanes": ONE_KEY, "hash_hops": TWO_KEYS, "psp": BAND, "psp_i": THETA, "psp_d": BAND,
    "atr": THETA, "ctr": TWO_KEYS,
}  # fmt: skip
"""A join for each way."""


def spread_case(specs: Mapping[str, QuerySpec], *cuts: int) -> Case:
    """Queries over the rows, in steps that are cut at these percentages of them."""
    return Case(STREAMS, cut(STREAMS, ROWS, cuts), tuple(Lifetime(name, spec) for name, spec in specs.items()))


KILLED = spread_case({"ring": BAND, "keys": TWO_KEYS, "near": NEAR_KEYS, "lane": ONE_KEY}, 35, 60, 80)


feed = partial(feed_steps, STREAMS, KILLED.steps)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started; two of its queries share their nodes."""
    place = Place(root)
    made = job(spark, place, STREAMS, {}, lanes=2)
    for name, spread in (("ring", "psp"), ("keys", "hash_hops"), ("near", "hash_hops"), ("lane", None)):
        spec = next(life.spec for life in KILLED.queries if life.name == name)
        made.query(name, spec.cql(), None, ms.sinks.files(place.answers(name)), spread=spread)
    return made


def parcels_below(root: Path) -> list[Path]:
    """The files by which parcels go from hop to hop."""
    return list(root.rglob("parcels/*.arrow"))


def main(root: Path) -> None:
    """Run the job to its end; with step 2 one query is spread otherwise, rows of the ring before run out meanwhile, and
    with step 3 that ring has other nodes at once, and of the queries that share nodes one goes back to lanes.
    """
    from midstream.spark.driver import Driver

    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold
    commands = {
        2: (Spread("ring", "psp_d", 3, {"relocation": "passive"}),),
        3: (Spread("keys", "off"), Spread("ring", "psp_d", 5, {"relocation": "aggressive"})),
    }

    def fold(self: Driver, batch: object, number: int) -> None:
        known = [command for _, command in log.after(0)]
        for command in commands.get(number, ()):
            if command not in known:
                log.append(command)
        original(self, batch, number)  # type: ignore[arg-type]

    Driver.fold = fold  # type: ignore[method-assign, assignment]
    finish(the_job(local_session("spread", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
