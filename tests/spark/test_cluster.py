"""The package ships itself: a cluster of two processes that have never heard of it gives the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.oracle.compare import assert_each_step_same
from tests.spark.crash_job import CASE, feed
from tests.spark.drive import Place

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = """
import sys
sys.path[:0] = sys.argv[2:]  # this process only: the executors do not get it
from pathlib import Path
from pyspark.sql import SparkSession
from tests.spark.crash_job import the_job
from tests.spark.drive import finish
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
spark = builder.config("spark.executor.memory", "1g").getOrCreate()
finish(the_job(spark, Path(sys.argv[1])))
where = spark.range(2).rdd.mapPartitions(lambda _: [__import__("midstream").__file__]).collect()
assert all(".zip" in one for one in where), where
spark.stop()
"""


@pytest.mark.soak
def test_a_cluster_that_lacks_the_package(tmp_path: Path) -> None:
    feed(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    home = tmp_path / "home"  # Executors work below it.
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(ROOT / "src"), str(ROOT)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    for name, answer in CASE.expected().items():
        assert_each_step_same(Place(tmp_path).by_step(name, len(CASE.steps)), answer, name)
