"""How the tests are spread over processes (`pytest -n 2`), and what makes these quick."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from midstream.runtime import checks
from tests.garbage import look_seldom
from tests.object_server import BUCKET, ObjectServer, free_port

FIRST = (
    "tests/spark/",
    "tests/conformance/",
    "tests/sharing/",
    "tests/property/",
)
"""What takes long is begun first, so that at the end no process waits for another."""

JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For every JVM that a test starts: the second compiler never earns what it costs in a minute."""


IN_MEMORY, ENOUGH = Path("/dev/shm"), 4 << 30
"""Tests' folders are kept in memory where there is room: a file system without a disk has no wait for one, and what is
written to survive the loss of power is most of what a step waits for.
"""


OBJECT_SERVER = ObjectServer(free_port())


def pytest_configure() -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_OPTIONS)
    if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ENOUGH:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
    # Whoever has no compiled code kept would have every process that a test starts compile the package anew.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault(
            "PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / f"midstream-compiled-{os.getuid()}")
        )
    # Before anything starts, for a JVM hands its environment on to the workers; the server begins when it is needed.
    os.environ.update(OBJECT_SERVER.environment)
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


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """An S3 server over HTTP; programs of the tests get at it by their environment."""
    OBJECT_SERVER.start()
    yield OBJECT_SERVER
    OBJECT_SERVER.stop()


@pytest.fixture
def bucket(object_server: ObjectServer, request: pytest.FixtureRequest) -> str:
    """A part of its bucket that no other test has."""
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid)):x}"
