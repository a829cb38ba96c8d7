"""The package as Python workers get it: compiled where the driver has it compiled, with its sources."""

import compileall
import inspect
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream
from midstream.pipeline.processor import DISABLED, numpy_settings
from midstream.spark import session
from midstream.spark.task import StepTask

PROGRAM = """
import inspect, sys
sys.path.insert(0, sys.argv[1])
from midstream.spark import task
print(task.__file__)
print(inspect.getsource(task.StepTask))
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what is compiled of the package is kept."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    assert compileall.compile_dir(Path(midstream.__file__).parent, quiet=1)
    return tmp_path


def test_workers_need_not_compile_it(compiled: Path) -> None:
    archive = session._archive.__wrapped__()
    names = zipfile.ZipFile(archive).namelist()
    sources = {name for name in names if name.endswith(".py")}
    assert sources
    assert {f"{name}c" for name in sources} == {name for name in names if name.endswith(".pyc")}
    place, source = _imported(archive)
    assert place == f"{archive}/midstream/spark/task.pyc"
    assert source.strip() == inspect.getsource(StepTask).strip(), "a traceback shows the lines that failed"


def test_what_is_compiled_of_an_older_source_is_not_taken(compiled: Path) -> None:
    for path in compiled.rglob("task.*.pyc"):
        data = bytearray(path.read_bytes())
        data[8:12] = b"\0\0\0\0"  # The time of the source.
        path.write_bytes(data)
    archive = session._archive.__wrapped__()
    assert _imported(archive)[0] == f"{archive}/midstream/spark/task.py"


def test_workers_load_numpy_as_the_processor_needs_it(spark: SparkSession) -> None:
    def disabled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"disabled": pa.array([os.environ.get(DISABLED)], pa.string())})

    session.ship(spark.sparkContext)
    (row,) = spark.range(1, numPartitions=1).mapInArrow(disabled, "disabled string").collect()
    assert row.disabled == numpy_settings().get(DISABLED, os.environ.get(DISABLED))


def _imported(archive: str) -> tuple[str, str]:
    """The file that a module is imported from by another process, and the source of a class in it."""
    told = subprocess.run([sys.executable, "-c", PROGRAM, archive], capture_output=True, text=True, check=True).stdout
    place, source = told.split("\n", 1)
    return place, source
