"""A job with a query of every spreading, of every bound by count and of every objective is killed amid its steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.pipeline.crash_points import POINTS, SPREAD_POINTS
from midstream.ring import lengthening
from midstream.ring.spreading import spreadings
from midstream.step.spreading import node_orders
from tests.oracle.compare import assert_each_step_same
from tests.property.drive import start
from tests.spark.drive import Place, finish
from tests.spark.every_spread_job import ASKED, BETWEEN, BOUNDED, CASE, COUNTED, RINGS, feed, the_job
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.spread_job import JOINS, parcels_below
from tests.spark.test_spreads import placed

JOB = "tests.spark.every_spread_job"
CHOSEN = 2 * BETWEEN
"""The step in which the number of nodes has been chosen by what was counted, and rows have been bounded by count."""

CRASHES = [
    *(("amid_hop_1", step) for step in (1, CHOSEN)),
    *((point, CHOSEN) for point in ("amid_placing", "amid_hop_2", "before_manifest", "after_manifest")),
]
"""One after the other on the same checkpoint."""


@pytest.mark.timeout(900)
def test_the_driver_is_killed(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step is the oracle's, and each node has the rows and did the work of an embedded engine's."""
    assert JOINS.keys() == spreadings().keys() and {"psp", "psp_i", "psp_d"} <= set(BOUNDED)
    assert {point for point, _ in CRASHES} >= set(SPREAD_POINTS)
    monkeypatch.setattr(lengthening, "STEPS_BETWEEN", BETWEEN)
    monkeypatch.setattr(node_orders, "LEAST_COUNTED", COUNTED)
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in sorted(CRASHES, key=lambda crash: crash[1]):
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        committed = point in POINTS[POINTS.index("after_manifest") :]
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    for name, answer in CASE.expected().items():
        assert answer.table.num_rows
        assert_each_step_same(place.by_step(name, len(CASE.steps)), answer, name)
    assert not list(tmp_path.glob("answers/*/_staging/*")) and not parcels_below(tmp_path)
    engine = start(CASE.streams, lanes=2)
    for life in CASE.queries:
        engine.add_query(life.name, life.spec.cql(), **ASKED[life.name])
    for tables in CASE.steps:
        engine.push(dict(tables))
    entries = place.manifest().queries
    found = {name: placed(entry.nodes) for name, entry in entries.items()}
    assert found == {name: placed(entry.nodes) for name, entry in engine.manifest.queries.items()}
    for name in RINGS:
        orders = placed(entries[f"{name} of four"].nodes).orders
        assert any(len(set(each)) > 1 for each in orders.values()), "the nodes have one order"
    for name in BOUNDED:
        assert entries[f"{name} bounded"].group == entries[f"{name} wide"].group, "the two share no ring"
        assert all(came.rows for came in placed(entries[f"{name} bounded"].nodes).came.values()), "nothing is counted"
