"""How the tests are spread over processes (`pytest -n 2`), and what makes these quick."""

from __future__ import annotations

import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from midstream.runtime import checks
from tests.garbage import look_seldom

FIRST = (
    "tests/spark/",
    "tests/conformance/",
    "tests/sharing/",
    "tests/unit/cli/test_run_on_spark.py",
    "tests/property/",
)
"""What takes long is begun first, so that at the end no process waits for another."""

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For every JVM that a test starts: the second compiler never earns what it costs in a minute."""


def pytest_configure() -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS)
    checks.turn_on()  # Every lane in the tests holds operators and strategies to their contracts.


class ByFile(LoadScopeScheduling):
    """A file's tests run in one process, for they may share what is dear; all that share a Spark session too."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return FIRST[0] if file.startswith(FIRST[0]) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False  # The order of the collection counts, not how many tests a file has.
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    return next((turn for turn, begin in enumerate(FIRST) if item.nodeid.startswith(begin)), len(FIRST))


def pytest_collection_finish() -> None:
    look_seldom()
