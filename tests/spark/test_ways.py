"""docs/ways.md names every file of the host rooms that a batch passes on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.spark.driver import Driver
from tests.crash_case import CHAIN, STREAMS
from tests.docs.test_ways import named, passed
from tests.spark.drive import Place, finish, job
from tests.spark.test_jobs import feed_step

SECTION = "A batch from `foreachBatch` to a sink"


def test_the_page_names_every_file_on_the_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, ways, fold = Place(tmp_path), list[list[str]](), Driver._fold
    monkeypatch.setattr(Driver, "_fold", lambda *given: ways.append(passed(lambda: fold(*given))))
    for step in range(4):
        feed_step(place, step)
        finish(job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=1))
    files = ways[-1]
    missing, gone = [one for one in files if one not in named(SECTION)], set(named(SECTION)) - set(files)
    assert not missing and not gone, f"docs/ways.md, {SECTION}: add {missing}, take out {sorted(gone)}"
