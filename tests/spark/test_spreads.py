"""Joins that are spread over nodes run on Spark: every step as DuckDB has it, however they are spread and change."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.ring.discovery import spreadings
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import Hooks, Place, finish, job

SHAPE = Shape(seed=7, sizes=(90, 90, 90), span=24, keys=6, disorder=2, slack=1)
STREAMS, ROWS = draw_rows(SHAPE)


def join(conditions: tuple[tuple[str, str], ...], window: int = 3) -> QuerySpec:
    sources = tuple(SourceSpec(name, name, range=window * SECOND) for name in "ABC")
    items = (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c"))
    return QuerySpec(sources, items, tuple(Condition(text, tuple(names)) for text, names in conditions))


TWO_KEYS = join((("A.k = B.k", "AB"), ("B.n = C.n", "BC")), 4)
BAND = join((("A.k - B.k BETWEEN -1 AND 1", "AB"), ("B.k - C.k BETWEEN 0 AND 1", "BC")))
THETA = join((("A.n < B.n", "AB"), ("B.k <> C.k", "BC")))
ONE_KEY = join((("A.k = B.k", "AB"), ("B.k = C.k", "BC")))


def case(specs: dict[str, QuerySpec], *cuts: int) -> Case:
    return Case(STREAMS, cut(STREAMS, ROWS, cuts), tuple(Lifetime(name, spec) for name, spec in specs.items()))


def test_every_way(spark: SparkSession, tmp_path: Path, hooks: Hooks) -> None:
    """All ways side by side in one job."""
    specs = {name: ONE_KEY if name == "lanes" else TWO_KEYS for name in spreadings()}
    found = case(specs, 40, 70)
    place = Place(tmp_path)
    for step, tables in enumerate(found.steps):
        for spec in STREAMS:
            place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))
    made = job(spark, place, STREAMS, {}, lanes=2)
    for life in found.queries:
        made.query(
            life.name, life.spec.cql(), None, ms.sinks.files(place.answers(life.name)), spread=life.name, nodes=3
        )
    finish(made)
    for name, answer in found.expected().items():
        assert_each_step_same(place.by_step(name, len(found.steps)), answer, name)
