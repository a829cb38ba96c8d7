"""Drivers in the JVM of the tests' own session, each forked off a process that has imported all it needs.

What a driver costs is the start of its JVM and its imports; here it has neither. What kills one kills its Python
process alone, as where that is on another machine than Spark's driver. A driver may have a JVM of its own, which dies
with it: that is started while the driver before it runs.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from midstream.spark import session as sessions
from midstream.spark.feed import Feed
from midstream.spark.session import local_session
from tests.forked import Fork, Forks
from tests.spark.drive import SHORT_LIVED
from tests.spark.ready_classes import environment

JOBS = (
    "chained_job",
    "crash_job",
    "cut_by_load_job",
    "decide_job",
    "decide_lanes_job",
    "every_spread_job",
    "migration_job",
    "nexmark_job",
    "sharing_job",
)
JOBS += ("pieces_job", "spread_job", "spread_levels_job", "topic_job")
NEEDED = (*(f"tests.spark.{name}" for name in JOBS), "midstream.cli.run")


@dataclass(frozen=True)
class ForkedDrivers:
    """Runs one driver after the other: while one runs, Spark calls it and not the tests' own process."""

    spark: SparkSession
    forks: Forks

    def start(self, program: str, *arguments: str | Path, **environment: str) -> Fork:
        """Start a driver, which must be waited for by `end`."""
        context = self.spark.sparkContext
        sessions.ship(context)  # Once for all: Spark refuses a second file of the same name.
        gateway: Any = context._gateway
        door = {
            "PYSPARK_GATEWAY_PORT": str(gateway.gateway_parameters.port),
            "PYSPARK_GATEWAY_SECRET": gateway.gateway_parameters.auth_token,
        }
        package = (sessions._archive(), list(context._python_includes))
        first = ("tests.spark.forked_drivers:join_session", package)
        return self.forks.start(program, *arguments, first=first, **door, **environment)

    def end(self, driver: Fork) -> CompletedProcess[str]:
        """Wait for its end; then nothing of it runs any more, in the JVM neither, which calls the tests again."""
        out, errors = driver.communicate(300)
        for query in self.spark.streams.active:
            query.stop()
        context: Any = self.spark.sparkContext
        while any(executor.numRunningTasks() for executor in context._jsc.sc().statusTracker().getExecutorInfos()):
            time.sleep(0.01)
        gateway = context._gateway
        if gateway.__dict__.get("_callback_server") is not None:
            server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
            server.resetCallbackClient(server.getCallbackClient().getAddress(), gateway._callback_server.port)
        return CompletedProcess([], driver.wait(), out, errors)

    def run(self, program: str, *arguments: str | Path, **environment: str) -> CompletedProcess[str]:
        """Run a driver to its end."""
        return self.end(self.start(program, *arguments, **environment))

    def kill(self, program: str, root: Path, point: str) -> None:
        """Run a driver until it kills itself at a named point."""
        done = self.run(program, root, MIDSTREAM_KILL_AT=point)
        assert done.returncode == -signal.SIGKILL, done

    def kill_with_their_jvms(self, program: str, root: Path, points: Sequence[str]) -> Iterator[str]:
        """Run a driver for each point, one after the other, until it kills its JVM and itself there; then the point."""
        coming = [self._with_a_jvm(program, root, points[0])]
        try:
            for number, point in enumerate(points):
                driver = coming.pop()
                may_begin(driver.out).touch()
                coming += [self._with_a_jvm(program, root, following) for following in points[number + 1 : number + 2]]
                out, errors = driver.communicate()
                assert driver.wait() == -signal.SIGKILL, (out, errors)
                yield point
        finally:
            for driver in coming:
                driver.kill()

    def _with_a_jvm(self, program: str, root: Path, point: str) -> Fork:
        first, options = ("tests.spark.forked_drivers:start_session", ()), environment()["SPARK_SUBMIT_OPTS"]
        return self.forks.start(program, root, first=first, MIDSTREAM_KILL_AT=point, SPARK_SUBMIT_OPTS=options)


@contextmanager
def forked_drivers(spark: SparkSession) -> Iterator[ForkedDrivers]:
    """Drivers in the JVM of a session."""
    forks = Forks(*NEEDED)
    try:
        yield ForkedDrivers(spark, forks)
    finally:
        forks.close()


def may_begin(out: Path) -> Path:
    """The file that a driver with a JVM of its own waits for; it lies beside what the driver says."""
    return out.with_suffix(".begin")


def start_session() -> None:
    """Give this process a session in a JVM of its own, and wait until it may begin."""
    local_session("tests", settings=SHORT_LIVED)
    while not may_begin(Path(os.readlink("/proc/self/fd/1"))).exists():
        time.sleep(0.01)


def join_session(archive: str, includes: Sequence[str]) -> None:
    """Have this process take the session that the JVM has for one that it has made itself."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    gateway = launch_gateway()
    # The JVM tells whoever it calls now which objects of the drivers before it has forgotten, by their numbers alone.
    gateway.gateway_property.pool.next_id = 1_000_000 * os.getpid()
    jvm: Any = gateway.jvm
    there = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=there, conf=SparkConf(_jconf=there.getConf()))
    context._python_includes[:] = includes
    sessions._SHIPPED.add((str(context.applicationId), archive))
    sessions._archive = lambda: archive  # type: ignore[assignment]
    here = jvm.org.apache.hadoop.fs.Path(os.getcwd())
    jvm.org.apache.hadoop.fs.FileSystem.get(there.hadoopConfiguration()).setWorkingDirectory(here)
    jvm.java.lang.System.setProperty("user.dir", os.getcwd())  # Where file systems begin that are made anew.
    SparkSession(context)
    SparkSession.stop = lambda self: None  # type: ignore[method-assign]
    Feed.jvm_process = property(lambda self: os.getpid())  # type: ignore[assignment, method-assign]
