"""Drivers in the JVM of the tests' own session: `python -m tests.spark.forked_drivers` is the process they are from.

What a driver costs is the start of its JVM and its imports. Here each is a fork of one process that has imported all,
and finds a JVM that has run jobs before. What kills a driver kills its Python process alone, as where that is on
another machine than Spark's driver; tests that have the JVM killed as well start a process of their own.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from midstream.spark import session as sessions
from midstream.spark.feed import Feed

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Ended:
    """What a driver's process ended with and said."""

    code: int
    out: str
    errors: str


@dataclass(frozen=True)
class ForkedDrivers:
    """Runs one driver after the other, each as `python -m SCRIPT ARGUMENTS`, or `python SCRIPT.py ARGUMENTS`, would."""

    spark: SparkSession
    folder: Path
    requests: IO[str]
    answers: IO[str]

    @property
    def out(self) -> Path:
        """What the driver says."""
        return self.folder / "out"

    @property
    def errors(self) -> Path:
        """What it says on its standard error."""
        return self.folder / "errors"

    def start(self, script: str, *arguments: str | Path, **environment: str) -> int:
        """Start a driver; its process."""
        context = self.spark.sparkContext
        gateway: Any = context._gateway
        variables = {
            **environment,
            "PYSPARK_GATEWAY_PORT": str(gateway.gateway_parameters.port),
            "PYSPARK_GATEWAY_SECRET": gateway.gateway_parameters.auth_token,
        }
        sessions.ship(context)  # Once for all: Spark refuses a second file of the same name.
        package = [sessions._archive(), list(context._python_includes)]
        request = [script, [str(one) for one in arguments], os.getcwd(), variables, package, str(self.folder)]
        for file in (self.out, self.errors):
            file.write_text("")
        self.requests.write(json.dumps(request) + "\n")
        self.requests.flush()
        return int(self.answers.readline())

    def wait(self) -> Ended:
        """Wait for the end of the driver; then nothing of it runs any more, in the JVM neither."""
        code = int(self.answers.readline())
        self._calm()
        return Ended(code, self.out.read_text(), self.errors.read_text())

    def run(self, script: str, *arguments: str | Path, **environment: str) -> Ended:
        """Run a driver to its end."""
        self.start(script, *arguments, **environment)
        return self.wait()

    def kill(self, script: str, root: Path, point: str) -> None:
        """Run a driver until it kills itself at a named point."""
        ended = self.run(script, root, MIDSTREAM_KILL_AT=point)
        assert ended.code == -signal.SIGKILL, ended

    def _calm(self) -> None:
        """End what the driver has left running, and have the JVM call this process back again."""
        for query in self.spark.streams.active:
            query.stop()
        context: Any = self.spark.sparkContext
        while any(executor.numRunningTasks() for executor in context._jsc.sc().statusTracker().getExecutorInfos()):
            time.sleep(0.01)
        gateway = context._gateway
        if gateway.__dict__.get("_callback_server") is not None:
            server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
            server.resetCallbackClient(server.getCallbackClient().getAddress(), gateway._callback_server.port)


@contextmanager
def forked_drivers(spark: SparkSession) -> Iterator[ForkedDrivers]:
    """The process that drivers are forked from."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.spark.forked_drivers"]
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        yield ForkedDrivers(spark, Path(folder), process.stdin, process.stdout)
        process.stdin.close()


def main() -> None:
    """Fork a driver for each line of JSON; print its process, and how that ended."""
    for line in sys.stdin:
        driver = os.fork()
        if not driver:
            _be_driver(*json.loads(line))
        print(driver, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(driver, 0)[1]), flush=True)


def _be_driver(
    script: str, arguments: Sequence[str], folder: str, variables: dict[str, str], package: Any, said: str
) -> None:
    code: object = 1
    try:
        for number, (name, mode) in enumerate(((os.devnull, "r"), (f"{said}/out", "a"), (f"{said}/errors", "a"))):
            with open(name, mode) as file:
                os.dup2(file.fileno(), number)
        os.environ.update(variables)
        os.chdir(folder)
        _join_session(*package)
        sys.argv[1:] = arguments
        (runpy.run_path if script.endswith(".py") else runpy.run_module)(script, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _join_session(archive: str, includes: Sequence[str]) -> None:
    """Have this process take the session that the JVM has for one it has made."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    there = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=there, conf=SparkConf(_jconf=there.getConf()))
    context._python_includes[:] = includes
    sessions._SHIPPED.add((str(context.applicationId), archive))
    sessions._archive = lambda: archive  # type: ignore[assignment]
    here = jvm.org.apache.hadoop.fs.Path(os.getcwd())
    jvm.org.apache.hadoop.fs.FileSystem.get(there.hadoopConfiguration()).setWorkingDirectory(here)
    SparkSession(context)
    SparkSession.stop = lambda self: None  # type: ignore[method-assign]
    Feed.jvm_process = property(lambda self: os.getpid())  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    import midstream.cli.run  # noqa: F401  (What the scripts import, once for all of them.)
    import tests.spark.chained_job
    import tests.spark.migration_job
    import tests.spark.sharing_job  # noqa: F401  (What the scripts import, once for all of them.)

    with suppress(KeyboardInterrupt):
        main()
