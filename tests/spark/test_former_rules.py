"""A job on Spark that began by former rules of the language goes on by them, whatever its script declares anew."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.errors import LanguageError
from midstream.model.language_rules import LanguageRules
from midstream.model.manifest import Manifest
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, finish, job, read_all

COLUMNS = pa.schema([("k", pa.int64()), ("t", pa.int8()), ("ts", pa.timestamp("us"))])
STREAMS = [StreamSpec("A", COLUMNS, "ts")]
SHOWN = "SELECT k, round(t, -1) AS r FROM A"
NEVER = "SELECT k, CAST(ts AS BOOLEAN) AS x FROM A"
BY = "k, CAST(ts AS BOOLEAN), TUMBLE(ts, INTERVAL 1 SECOND)"
COUNTED = f"SELECT k, CAST(ts AS BOOLEAN) AS x, COUNT(*) AS n FROM A GROUP BY {BY}"
OVER = f"SELECT o.k, o.x FROM ({COUNTED}) AS o"
BEFORE = LanguageRules(edges=False)


def feed(place: Place, step: int) -> None:
    times = pa.array([datetime.fromtimestamp(step, UTC)] * 3, pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    rows = pa.table({"k": [3 * step + n for n in range(3)], "t": pa.array([127, 1, -128], pa.int8()), "ts": times})
    place.feed("A", step, rows)


def test_a_job_keeps_the_rules_that_it_began_with(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    feed(place, 0)
    with monkeypatch.context() as patched:
        first = ms.Job._first
        patched.setattr(ms.Job, "_first", lambda self: first(self).under(BEFORE))
        finish(job(spark, place, STREAMS, {"shown": SHOWN}, lanes=2))
    with pytest.raises(LanguageError, match="no TIMESTAMP can be cast to BOOLEAN"):
        job(spark, Place(tmp_path / "new"), STREAMS, {"never": NEVER})
    feed(place, 1)
    run = finish(job(spark, place, STREAMS, {"shown": SHOWN, "never": NEVER, "over": OVER}, lanes=2))
    assert place.manifest().rules == BEFORE and not run.status()["queries"]["shown"].get("rejected")
    shown = {row["k"]: row["r"] for row in read_all(place.answers("shown")).to_pylist()}
    assert shown == {0: None, 1: 0, 2: None, 3: None, 4: 0, 5: None}
    assert read_all(place.answers("never"))["x"].to_pylist() == [None] * 3
    assert place.manifest().queries.keys() >= {"shown", "never", "over"}


def test_a_job_that_begins_now_has_the_present_ones(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, 0)
    run = finish(job(spark, place, STREAMS, {"shown": SHOWN}, lanes=2))
    assert read_all(place.answers("shown"))["r"].to_pylist() == [0]
    assert Manifest().rules == place.manifest().rules and place.manifest().queries["shown"].rejected == 2
    assert run.status()["step"] == 0
