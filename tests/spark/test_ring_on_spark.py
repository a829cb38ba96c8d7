"""The lab's rings on Spark: results as DuckDB has them over all of the rows, counts as the virtual cluster foresees."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from midstream.lab.ring_on_spark import OnCluster, RingRun, SpreadRing, ValuedRows, on_spark
from midstream.lab.ring_routed import MICROSECONDS
from midstream.lab.ring_settings import WINDOW
from tests.duck import database

ROWS = ValuedRows.paced(3, [(3.0, WINDOW + 4)], seed=5)
ENDS = [WINDOW + second for second in (0, 2, 3, 4)]
SEGMENTS = {"segment": round(MICROSECONDS)}
RINGS = [
    SpreadRing("psp", 3, 0.2),
    SpreadRing("psp_d", 3, 0.2),
    SpreadRing("psp_i", 3, 0.2),
    SpreadRing("atr", 3, 0.2, options={"segment": 20 * SEGMENTS["segment"], "master": "B"}),
    SpreadRing("ctr", 3, 0.2, options={**SEGMENTS, "copies": 2}),
    SpreadRing("psp", 3, 0.2, options={"count_bound": "auto"}),
]
CHANGED, LENGTHS = len(RINGS) - 1, [3, 5, 2]
"""The ring whose length changes, and its nodes in each step."""


def expected(ring: SpreadRing, begin: float) -> set[tuple[int, ...]]:
    """What DuckDB joins of all rows, as far as its newest row comes from a second on."""
    duck = database()
    for stream, label in enumerate("ABC"):
        duck.register(label, ROWS.between(stream, 0, ENDS[-1]))
    _, _, where = ring.sql.partition(" WHERE ")
    found = duck.sql(
        f"SELECT A.n, B.n, C.n FROM A, B, C WHERE {where} "
        f"AND GREATEST(A.ts, B.ts, C.ts) - LEAST(A.ts, B.ts, C.ts) <= INTERVAL {WINDOW:g} SECONDS "
        f"AND epoch_us(GREATEST(A.ts, B.ts, C.ts)) >= {round(begin * MICROSECONDS)}"
    ).fetchall()
    assert len(found) == len(set(found))
    return set(found)


def totals(run: RingRun) -> tuple[int, int]:
    """Return the pairs compared and the visits of all steps."""
    return sum(sum(step.compared) for step in run.steps), sum(step.visits for step in run.steps)


def test_spark_and_the_virtual_cluster_do_the_same_join(spark: SparkSession) -> None:
    found = on_spark(spark, ROWS, RINGS, ENDS, {CHANGED: LENGTHS})
    results = expected(RINGS[0], ENDS[0])
    assert results
    for ring, run in zip(RINGS, found, strict=True):
        foreseen = OnCluster(ROWS, ring, ENDS)
        assert run.results == foreseen.found.results == results, ring
        assert [sum(step.held) > 0 for step in run.steps] == [True] * len(run.steps)
        if ring.scheme.startswith("psp"):
            # Of a ring that changes its length the pairs alone: each of its nodes is visited.
            of = 1 if ring is RINGS[CHANGED] else 2
            assert totals(run)[:of] == pytest.approx(totals(foreseen.found)[:of], rel=0.1), ring
    assert [len(step.compared) for step in found[CHANGED].steps] == LENGTHS
    moved = [sum(step.moved for step in run.steps) for run in found]
    assert moved[0] > 0 == moved[1]


def test_rows_of_a_stream_are_cut_by_time() -> None:
    whole = ROWS.between(0, 0, ENDS[-1])
    parts = [ROWS.between(0, begin, end) for begin, end in ((0, 4.5), (4.5, 11), (11, ENDS[-1]))]
    assert pa.concat_tables(parts) == whole and all(len(part) for part in parts)
