"""Queries that read others' answers are spread over nodes, as those that they read are; each step is the oracle's."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from typing_extensions import override

from midstream.model.events import CommandRefused
from midstream.pipeline.crash_points import POINTS, SPREAD_POINTS
from midstream.spark import parcel
from midstream.spark.driver import Driver
from midstream.storage.local import LocalStorage
from midstream.storage.transfers import Transfers
from tests.oracle.compare import assert_each_step_same
from tests.property.drive import start
from tests.spark.drive import Hooks, Place, finish
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.spread_job import parcels_below
from tests.spark.spread_levels_job import CHANGES, QUERIES, SPREADS, STEPS, STREAMS, expected, feed, the_job

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

JOB = "tests.spark.spread_levels_job"


def check(place: Place) -> None:
    for name, answer in expected().items():
        assert answer.table.num_rows
        assert_each_step_same(place.by_step(name, len(STEPS)), answer, name)
    assert not list(place.root.glob("answers/*/_staging/*")), "staging was left behind"
    assert not parcels_below(place.root)


@pytest.mark.parametrize("way", ["by the shuffle", "by files"])
def test_every_level_is_spread_over_nodes(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Each node of each query has the rows and does the work that it has and does in the embedded engine."""
    if way == "by files":
        monkeypatch.setattr(parcel, "LEAST", 1)
    feed(tmp_path)
    for step, commands in CHANGES.items():
        for command in commands:
            hooks.give(step, command)
    done = finish(the_job(spark, tmp_path))
    assert not [event for event in done.events if isinstance(event, CommandRefused)]
    check(Place(tmp_path))
    engine = start(STREAMS, lanes=2)
    for name, spec in QUERIES.items():
        asked = {"spread": SPREADS[name], "nodes": 2} if name in SPREADS else {}
        engine.add_query(name, spec.cql(), **asked)
    for step, tables in enumerate(STEPS):
        for one in CHANGES.get(step, ()):
            if one.scheme == "off":
                engine.spread(one.query, "off")
            else:
                engine.spread(one.query, one.scheme, nodes=one.nodes, **one.options)
        engine.push(dict(tables))
    found, there = Place(tmp_path).manifest(), engine.manifest
    assert {name: entry.nodes and replace(entry.nodes, span=0) for name, entry in found.queries.items()} == {
        name: entry.nodes and replace(entry.nodes, span=0) for name, entry in there.queries.items()
    }
    assert found.operators == dict(there.operators)
    assert found.progress == there.progress


class SlowForAnswers(LocalStorage):
    """Like a bucket: several requests at a time, and those for answers that others read take their time."""

    at_once = 8

    @override
    def write(self, name: str, data: Bytes) -> None:
        if "-answers" in name:
            time.sleep(1.0)
        super().write(name, data)


def test_a_level_waits_for_the_answers_of_the_one_below(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    feed(tmp_path)
    here = sys.modules[__name__]

    def slow(driver: Driver) -> None:
        store = driver.store
        store.storage = SlowForAnswers(store.storage.url)
        store._transfers, store._write_behind = Transfers(store.storage), True

    hooks.at(0, slow)
    cloudpickle.register_pickle_by_value(here)  # The workers do not have the tests.
    try:
        finish(the_job(spark, tmp_path))
    finally:
        cloudpickle.unregister_pickle_by_value(here)
    check(Place(tmp_path))


@pytest.mark.timeout(600)
def test_the_driver_is_killed_at_every_point(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in [*((point, 1) for point in ("amid_tasks", "after_chunks", "after_manifest")),
                        *((point, 3) for point in (*SPREAD_POINTS, "before_sink"))]:  # fmt: skip
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        committed = point in POINTS[POINTS.index("after_manifest") :]
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    check(place)
