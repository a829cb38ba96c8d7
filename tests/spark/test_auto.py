"""`strategy="auto"` in a job: chosen on the driver, the same each time, by the lanes' figures together."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.events import Event, MigrationBegun, MigrationEnded
from tests.crash_case import PLANS
from tests.property.drive import Migrate, Restart
from tests.spark.crash_job import CASE
from tests.spark.drive import Hooks, check_case


def begun(events: list[Event]) -> MigrationBegun:
    (event,) = [event for event in events if isinstance(event, MigrationBegun)]
    return event


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_job_is_migrated_by_what_the_chooser_takes(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, lanes: int
) -> None:
    """Right before a restart, so that what was chosen is what goes on; no answer is lost or doubled."""
    actions = (Migrate(2, "chain", PLANS[1], "auto", {"objective": "memory"}), Restart(3))
    events = check_case(spark, hooks, tmp_path, CASE, {"chain": PLANS[0]}, actions, lanes=lanes)
    first = begun(events)
    assert first.strategy in ms.strategies()
    assert {one["strategy"] for one in first.detail["considered"]} == set(ms.strategies())
    ended = [event for event in events if isinstance(event, MigrationEnded)]
    assert all(event.detail["predicted"] == first.detail["predicted"] for event in ended)
