"""Which tests run (`make test`, `make verify`), how they are spread over processes, and what makes these quick."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from xdist.scheduler import LoadScopeScheduling

from midstream.runtime import checks
from tests.drawing import FIFTHS, PROFILE, SOAK, chosen_fifth, fifths
from tests.garbage import look_seldom
from tests.object_server import BUCKET, ObjectServer, free_port
from tests.selection import BUDGET, only_in_verify

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


COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("test", max_examples=100, derandomize=True, database=None, **COMMON)
settings.register_profile("soak", max_examples=2000, **COMMON)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(PROFILE)
    if not hasattr(config, "workerinput") and "not verify" in config.option.markexpr:
        config.pluginmanager.register(TestSeconds())
    chosen_fifth()  # Before the workers start, which take it from the environment.
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
    # Every lane in the tests, in every thread, holds operators and strategies to their contracts.
    checks._ON = ContextVar("checked", default=True)


def pytest_report_header() -> str:
    return f"random suites: fifth {chosen_fifth()} of {len(FIFTHS)} (MIDSTREAM_FIFTH={chosen_fifth()} draws it again)"


class TestSeconds:
    """Fail a run of `make test` whose tests take more than a fifth above the budget together."""

    __test__ = False
    seconds = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.seconds > BUDGET * 1.2 and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"all tests together took {self.seconds:.0f} seconds of a budget of {BUDGET:.0f}")
        if self.seconds > BUDGET * 1.2:
            terminalreporter.write_line(
                "ERROR: that is more than a fifth above the budget. Remedy: make the slowest quicker (--durations=30),"
                " or leave them to `make verify` in tests/selection.py; on a busy machine set MIDSTREAM_TEST_SECONDS"
            )


class ByFile(LoadScopeScheduling):
    """Run a file's tests in one process, because they may share what is dear.

    What `make test` runs of Spark shares one session; `make verify` has two side by side.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        few = "not verify" in self.config.option.markexpr
        return FIRST[0] if few and file.startswith(FIRST[0]) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False  # The order of the collection counts, not how many tests a file has.
    return ByFile(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a random test its fifths: each that Hypothesis draws, or that asks for a `fifth`."""
    if is_hypothesis_test(metafunc.function):
        draw_a_fifth(metafunc.function, least=0 if metafunc.definition.get_closest_marker("property") else 20)
        if "fifth" not in metafunc.fixturenames:
            metafunc.fixturenames.append("fifth")
    if "fifth" in metafunc.fixturenames:
        metafunc.parametrize("fifth", fifths(), indirect=True)


def draw_a_fifth(test: Any, least: int) -> None:
    """Have Hypothesis draw a fifth of a test's cases at a time; of few no less than `least`, or all."""
    whole = test._hypothesis_internal_use_settings or settings()
    if not hasattr(test, "whole"):
        test.whole = whole.max_examples
    cases = max(-(-test.whole // len(FIFTHS)), min(test.whole, least))
    test._hypothesis_internal_use_settings = settings(whole, max_examples=cases, derandomize=not SOAK, database=None)


@pytest.fixture
def fifth(request: pytest.FixtureRequest) -> int:
    """The fifth of its cases that a random test draws."""
    return int(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Have Hypothesis draw by the number of the fifth: a fixture that no test asks for is not set up."""
    callspec = getattr(item, "callspec", None)
    if isinstance(item, pytest.Function) and callspec is not None and is_hypothesis_test(item.function) and not SOAK:
        setattr(item.function, "_hypothesis_internal_use_seed", callspec.params["fifth"])  # noqa: B010


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if only_in_verify(item.nodeid):
        item.add_marker(pytest.mark.verify)


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
