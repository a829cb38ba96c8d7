"""An exception that nobody foresaw fails a step whole, is told with what to report, and stands in no way."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyspark
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.errors import InternalError
from midstream.pipeline.lane_task import FaultInWorker, ShippedPredicates, raise_failure
from midstream.spark import driver
from midstream.spark.parcel import END, STOP, unpacked_report
from midstream.spark.task import StepTask
from tests.crash_case import CHAIN, STREAMS
from tests.oracle.answer import answers
from tests.oracle.compare import assert_same
from tests.spark.crash_job import CASE
from tests.spark.drive import Place, finish, job, read_all
from tests.spark.test_jobs import feed_step


def broken(*_: Any) -> Any:
    return [][0]


@pytest.mark.parametrize("part", ["plan_step", "setting_of", "conclude_levels"])
def test_a_fault_on_the_driver_fails_the_step_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    make = lambda: job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=1)  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr(driver, part, broken)
        with pytest.raises(ms.InternalError, match="list index out of range") as caught:
            finish(make())
    assert caught.value.place.startswith("step 0, the ") and "test_faults.py line" in caught.value.place
    assert "report it" in caught.value.remedy and isinstance(caught.value.__cause__, IndexError)
    assert place.manifest().step == -1 and not list(place.answers("chain").glob("step=*"))
    finish(make())
    assert_same(read_all(place.answers("chain")), answers(STREAMS, CASE.steps[:1], CASE.queries[:1])["chain"])


def test_a_fault_in_a_worker_is_reported_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark does not try such a task again: it would fail again."""
    monkeypatch.setattr(StepTask, "_run", broken)
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: Mock(partitionId=lambda: 3, attemptNumber=lambda: 0))
    task = Mock(
        spec=StepTask,
        _run=broken,
        operators=frozenset(),
        predicates=ShippedPredicates(),
        partitions=4,
        parcel_files=None,
    )
    task.opened.return_value = task
    for name in ("report", "_report"):
        setattr(task, name, partial(getattr(StepTask, name), task))
    sent = [parcel for _, parcel in StepTask.addressed(task, iter(()))]
    (report,) = [unpacked_report(parcel.body) for parcel in sent if parcel.stage == END]
    assert [parcel.kind for parcel in sent if parcel.stage != END] == [STOP] * 4
    with pytest.raises(InternalError, match="list index out of range") as caught:
        raise_failure(report)
    assert caught.value.place.startswith("partition 3, ")
    assert isinstance(caught.value.__cause__, FaultInWorker) and "in broken" in str(caught.value.__cause__)
