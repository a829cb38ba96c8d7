"""A source of another package, which says itself how a job on Spark reads it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from midstream.cli.spark_job import job_of
from midstream.model.errors import InputError
from midstream.sql.job_file import parse_job
from tests.extension import distribution
from tests.spark.drive import finish

ON_SPARK = """
def frame_of(session, name, spec, patience):
    files = session.readStream.schema("k BIGINT, ts TIMESTAMP")
    return files.parquet(spec.options["folder"])
"""
COUNTING = """
import pyarrow as pa

from midstream.embedded.file_source import FileSource
from midstream.model.errors import InputError


class Counting(FileSource):
    name = "counting"
    on_spark = "counting_on_spark:frame_of"

    @classmethod
    def for_spark(cls, name, spec):
        if "folder" not in spec.options:
            raise InputError("no folder", place=f"[streams.{name}]", remedy="name one")

    @staticmethod
    def of(name, spec, known=None): ...
    def most(self): ...
    def waiting(self, read): ...
    def read(self, files): ...
    def forgettable(self, read, kept): ...
"""


def test_another_package_brings_a_source_for_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"midstream.sources": {"counting": "counting_source:Counting"}}
    folder = distribution(tmp_path / "site", own, counting_source=COUNTING, counting_on_spark=ON_SPARK)
    monkeypatch.syspath_prepend(str(folder))
    spark.sql("SELECT id AS k, timestamp_seconds(id) AS ts FROM range(9)").write.parquet(str(tmp_path / "in"))
    text = f"""checkpoint = "{tmp_path}/ckpt"
        [streams.A]
        format = "counting"
        timestamp = "ts"
        options = {{ folder = "{tmp_path}/in" }}
        [queries.q]
        sql = "SELECT k FROM A"
        sink = {{ path = "{tmp_path}/out" }}
        """
    finish(job_of(spark, parse_job(text)))
    assert sorted(pq.read_table(tmp_path / "out")["k"].to_pylist()) == list(range(9))
    with pytest.raises(InputError, match="no folder"):
        job_of(spark, parse_job(text.replace("folder =", "other =")))
