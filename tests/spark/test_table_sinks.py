"""A job that writes into tables of Delta, Iceberg and PostgreSQL goes back, and is restored: no row lost or doubled."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import midstream as ms
from midstream.cli.main import main
from tests.postgresql import Server, server
from tests.sinks.lakes import describe_catalog
from tests.spark.test_time_lines import each, feed, finish, the_job


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with server() as begun:
        yield begun


def test_a_job_with_all_sinks_of_tables(
    spark: SparkSession, tmp_path: Path, postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe_catalog(tmp_path, monkeypatch)
    sinks: dict[str, Any] = {  # As a job file has them.
        "d": {"type": "delta", "path": str(tmp_path / "delta")},
        "i": {"type": "iceberg", "table": "ns.results", "catalog": "tests"},
        "p": {"type": "postgresql", "table": "results", "dsn": postgresql.dsn},
    }
    checkpoint = tmp_path / "checkpoint"

    def do(*seconds: int) -> None:
        feed(tmp_path, *seconds)
        finish(the_job(spark, tmp_path, **sinks).start({"availableNow": True}))

    def found() -> dict[str, dict[int, int]]:
        times = {
            "d": DeltaTable(tmp_path / "delta").to_pyarrow_table()["a"].to_pylist(),
            "i": load_catalog("tests").load_table("ns.results").scan().to_arrow()["a"].to_pylist(),
            "p": [time for (time,) in postgresql.execute("SELECT a FROM results")],
        }
        return {name: dict(sorted(Counter(t.second for t in of).items())) for name, of in times.items()}

    do(0)
    shutil.copytree(checkpoint, tmp_path / "backup")
    do(1)
    do(2)
    assert found() == dict.fromkeys(sinks, each(range(3)))
    assert main(["rewind", str(checkpoint), "1"]) == 0
    assert found() == dict.fromkeys(sinks, each(range(2)))
    do(3)
    assert found() == dict.fromkeys(sinks, each(range(4)))
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "backup", checkpoint)
    with pytest.raises(ms.CheckpointError, match=r"newest step is 0.*midstream rewind .* 0"):
        do(4)
    assert found() == dict.fromkeys(sinks, each(range(4))), "a job that is refused changes nothing"
    assert main(["rewind", str(checkpoint), "0"]) == 0
    assert found() == dict.fromkeys(sinks, each(range(1)))
    do()
    assert found() == dict.fromkeys(sinks, each(range(5)))
