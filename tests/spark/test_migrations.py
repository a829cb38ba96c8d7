"""The driver is killed amid the migrations of every strategy; after a restart all sinks are those of a quiet run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.migration.strategy_contract import discovered
from midstream.optimizer.chooser import OBJECTIVES
from midstream.units.choose import AUTO
from tests.oracle.compare import assert_each_step_same, assert_same
from tests.spark.drive import Place, finish, read_all
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.migration_job import BEGIN, CASE, MOVES, feed, the_job

STEPS = len(CASE.steps)
KILLS = (("before_manifest", BEGIN), ("amid_tasks", BEGIN + 1), ("after_manifest", BEGIN + 1))
"""As all begin: the state is written, yet not committed. Then twice in the step after: before and after it counts."""

LASTING = {"parallel_track", "hybmig", "gpt", "ghm", "jisc", "jisc_stairs", "held", "completed", "just_in_time"}
LASTING |= {f"auto_{of}" for of in OBJECTIVES}
"""The queries whose migrations outlast their first step; all others ended in it."""


def under_way(place: Place) -> set[str]:
    return {name for name, entry in place.manifest().queries.items() if entry.migrations}


@pytest.mark.timeout(600)
def test_the_driver_is_killed_amid_every_migration(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    assert {move.strategy for move in MOVES.values()} == {AUTO, *discovered()}
    assert {move.options.get("objective") for move in MOVES.values()} >= OBJECTIVES.keys()
    for point, step in KILLS:
        drivers.kill("tests.spark.migration_job", tmp_path, f"{point}:{step}")
        committed = point == "after_manifest"
        assert place.manifest().step == (step if committed else step - 1)
        assert under_way(place) == (LASTING if place.manifest().step >= BEGIN else set())
    finish(the_job(spark, tmp_path))
    assert place.manifest().step == STEPS - 1
    assert {name: entry.plan for name, entry in place.manifest().queries.items()} == {
        n: m.new for n, m in MOVES.items()
    }
    assert under_way(place) == set()
    for name, answer in CASE.expected().items():
        assert answer.table.num_rows
        if MOVES[name].options.get("hold_new"):
            assert_same(read_all(place.answers(name)), answer, name)
        else:
            assert_each_step_same(place.by_step(name, STEPS), answer, name)
