"""Spark sessions as this package likes them, the settings a job's own queries run under, and the package itself.

It sends itself to the executors, so that a cluster needs nothing but Python, numpy, pyarrow and sqlglot.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

import midstream
from midstream.model.errors import CheckpointError, InputError, MidstreamError, ReadError, SparkError
from midstream.model.spark_cause import own_error, spark_cause
from midstream.pipeline.processor import numpy_settings

TASK_ATTEMPTS = 4

_SHIPPED: set[tuple[str, str]] = set()

_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).parent / "log4j2.properties"

QUERY_SETTINGS: Mapping[str, str] = {
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Hadoop's local file system starts a process to set the rights of each file, and writes a twin of checksums.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
"""What a job's streaming query is started with."""

STEP_SETTINGS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",  # A step's partitions are its lanes; nothing may merge or split them.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""What the job of a step runs under."""


def local_session(
    app_name: str = "midstream", cores: int | str = "2", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a quiet session: no user interface, errors only, little waiting.

    The session runs on this machine, with `cores` as in `local[cores]`, unless `settings` have a `spark.master`. A task
    that dies is tried again. If this process has a session already, the function returns this session as it is. Spark's
    JVM, if this call starts it, ends with this process and by no SIGTERM of its own.
    """
    given = dict(settings or {})
    master = given.get("spark.master", f"local[{cores},{TASK_ATTEMPTS}]")
    if master.startswith("local"):
        # Machines of a cluster could not reach a driver at these addresses.
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        given = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK, **given}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # pyspark says at every turn that it has not been tried with pandas 3, which is not used here.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    builder = SparkSession.builder.master(master).appName(app_name)
    if _JVM_OPTIONS in given:
        given[_JVM_OPTIONS] += f" {_quiet()[_JVM_OPTIONS]}"
    for key, value in {**_quiet(), **given}.items():
        builder = builder.config(key, value)
    has_jvm = SparkContext._gateway is not None
    session = builder.getOrCreate()
    if not has_jvm:
        _ignore_terminate(session)
    session.sparkContext.setLogLevel("ERROR")
    return session


def end(session: SparkSession) -> None:
    """End a session. If its JVM has died there is none, and the failure of the job is to be reported instead."""
    with suppress(Py4JError, OSError):
        session.stop()


def _ignore_terminate(session: SparkSession) -> None:
    # PySpark lets the JVM ignore SIGINT, not SIGTERM. `timeout` and systemd send one to every process of a job, which
    # could not end in order without its JVM. The JVM ends when its stdin closes, however this process dies.
    context: Any = session.sparkContext
    if getattr(context._gateway, "proc", None) is not None:  # Else it is the JVM that has started this process.
        signals: Any = context._jvm.sun.misc
        signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)


def _quiet() -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        _JVM_OPTIONS: f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.sql.shuffle.partitions": "2",
        # Otherwise every local file that Spark writes has a twin of checksums, and starts processes to set rights.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        # Over TCP each Python task waits 40 ms: for the acknowledgement of what was sent before the last few bytes.
        "spark.python.unix.domain.socket.enabled": "true",
        # A broadcast takes whole blocks of memory, and each step has one a stream and one a stage. Java's collector
        # treats blocks of 4 MB as humongous, and runs in almost every step for them while the heap is small.
        "spark.broadcast.blockSize": "512k",
        "spark.executorEnv.PYTHONWARNINGS": "ignore::FutureWarning",
    }


@contextmanager
def settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while; a query that is started meanwhile keeps them for its life."""
    before = {key: session.conf.get(key, None) for key in values}
    for key, value in values.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)


def ship(context: SparkContext) -> None:
    """Make the package importable in the Python workers of a Spark application; once is enough.

    Workers on this machine also get the environment that numpy is to be loaded with.
    """
    if str(context.master).startswith("local"):  # Elsewhere the workers' processors may be others.
        for name, value in numpy_settings().items():
            context.environment.setdefault(name, value)
    archive = _archive()
    mark = (str(context.applicationId), archive)
    if mark not in _SHIPPED:
        context.addPyFile(archive)
        _SHIPPED.add(mark)


@cache
def _archive() -> str:
    # The name says what is in it, so that no worker takes an old one for a new one. Each source has with it what this
    # machine has compiled of it, which a worker takes if it is of that source and of its own Python: without, each
    # would compile the whole package anew.
    package = Path(midstream.__file__).parent
    sources = [path for path in sorted(package.rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    content = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in sources}
    digest = hashlib.sha256(b"\0".join(name.encode() + b"\0" + data for name, data in content.items())).hexdigest()[:12]
    folder = tempfile.mkdtemp(prefix="midstream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = os.path.join(folder, f"midstream-{digest}.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for (name, data), source in zip(content.items(), sources, strict=True):
            entry = zipfile.ZipInfo.from_file(source, name, strict_timestamps=False)
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
            compiled = cache_from_source(source) if source.suffix == ".py" else ""
            if os.path.isfile(compiled):
                archive.write(compiled, f"{name}c")
    return target


_NO_JVM = "its Java process has ended, or was killed"
_NO_JVM_REMEDY = (
    "see Spark's log, and whether the machine ran out of memory (then give Spark less, by spark.driver.memory, or the "
    "machine more); start the job again, and it continues where it stopped"
)
_REMEDY = "correct that and start the job again, and it continues where it stopped; Spark's log has the whole error"


def as_spark_error(failure: BaseException, place: str) -> BaseException:
    """Translate an exception of Spark's into a `SparkError` with it as cause; return any other as it is.

    One that a source of our own was ended by, in a process of Spark's, is the error that the source raised.
    """
    own = type(failure).__module__.startswith(("py4j.", "pyspark."))
    if not own and not isinstance(failure, ConnectionError):
        return failure
    text = _text(failure)
    remedy = _NO_JVM_REMEDY if text == _NO_JVM else _REMEDY
    error: MidstreamError = SparkError(f"Spark has failed: {text}", place=place, remedy=remedy)
    if text != _NO_JVM and (of_source := own_error(str(failure), (InputError, ReadError, CheckpointError))) is not None:
        error = of_source
    error.__cause__ = failure
    return error


def _text(failure: BaseException) -> str:
    # The text of an exception of Java's is asked of the JVM, which may have ended.
    if isinstance(failure, ConnectionError | Py4JNetworkError):
        return _NO_JVM
    try:
        return spark_cause(str(failure))
    except (Py4JError, OSError):
        return _NO_JVM
