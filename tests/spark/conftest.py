"""One Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from midstream.runtime import checks
from midstream.spark.driver import Driver
from midstream.spark.session import local_session
from tests.spark.drive import SHORT_LIVED, Hooks
from tests.spark.forked_drivers import ForkedDrivers, forked_drivers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("midstream tests", settings=SHORT_LIVED)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def drivers(spark: SparkSession) -> Iterator[ForkedDrivers]:
    with forked_drivers(spark) as found:
        yield found


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a job read no chunk that its step does not need, as in production."""
    monkeypatch.setattr(checks, "_ON", ContextVar("unchecked", default=False))


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """What is put in here happens on the driver right before a step."""
    found, original = Hooks(), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        for hook in found.by_step.pop(number, []):
            hook(self)
        original(self, batch, number)

    monkeypatch.setattr(Driver, "fold", fold)
    monkeypatch.setattr("midstream.spark.driver.LARGE", 0)  # These steps are small, yet selections go to Spark.
    return found
