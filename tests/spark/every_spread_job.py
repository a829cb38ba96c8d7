"""The job with a query of every spreading, bound and objective that is killed: `python -m tests.spark.every_spread_job
FOLDER`.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import midstream as ms
from midstream.ring import lengthening
from midstream.ring.lengthening import OBJECTIVES
from midstream.ring.spreading import spreadings
from midstream.spark.session import local_session
from midstream.step.spreading import node_orders
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, job
from tests.spark.spread_job import BAND, JOINS, STREAMS, THETA, WIDE_BAND, spread_case

FOUR = QuerySpec(
    tuple(SourceSpec(alias, stream, range=2 * SECOND) for alias, stream in zip("ABCD", "ABCA", strict=True)),
    tuple(Item(f"{alias}.u", alias.lower()) for alias in "ABCD"),
    (Condition("A.n < B.n", ("A", "B")), Condition("B.k <> C.k", ("B", "C")), Condition("B.n < D.k", ("B", "D"))),
)
"""A join in which each node may have probing orders of its own."""

RINGS = [name for name, one in spreadings().items() if one.ages or one.keeps_slices]
BOUNDED = [name for name, one in spreadings().items() if "count_bound" in one.options]
AUTO_BOUND = {"nodes": 3, "spread_options": {"count_bound": "auto"}}
ASKED: dict[str, dict[str, Any]] = {
    **{name: {"spread": name, "nodes": 3} for name in spreadings()},
    **{f"{name} {join}": {"spread": name, **AUTO_BOUND} for name in BOUNDED for join in ("bounded", "wide")},
    **{of: {"spread": "psp", "nodes": "auto", "spread_options": {"objective": of}} for of in OBJECTIVES},
    **{f"{name} of four": {"spread": name, "nodes": 3} for name in RINGS},
}
"""How each query is spread. Two share each ring whose slices take as many rows as its statistics say."""

CASE = spread_case(
    {
        **{name: JOINS[name] for name in spreadings()},
        **{f"{name} {join}": spec for name in BOUNDED for join, spec in (("bounded", BAND), ("wide", WIDE_BAND))},
        **dict.fromkeys(OBJECTIVES, THETA),
        **{f"{name} of four": FOUR for name in RINGS},
    },
    20,
    40,
    60,
    80,
)
BETWEEN = 2
"""After so many steps the cost model chooses the number of nodes anew here, where it is 16."""

COUNTED = 20
"""A node chooses its order by so many pairs here, where it takes 1,000."""

feed = partial(feed_steps, STREAMS, CASE.steps)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    place = Place(root)
    made = job(spark, place, STREAMS, {}, lanes=2)
    for life in CASE.queries:
        sink = ms.sinks.files(place.answers(life.name))
        made.query(life.name, life.spec.cql(), None, sink, **ASKED[life.name])
    return made


def main(root: Path) -> None:
    """Run the job to its end."""
    lengthening.STEPS_BETWEEN, node_orders.LEAST_COUNTED = BETWEEN, COUNTED
    finish(the_job(local_session("spreads", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
