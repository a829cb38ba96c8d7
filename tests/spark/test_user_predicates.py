"""A user's predicate in a job: a distance join of three streams against DuckDB, and what goes wrong in a worker."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.drop_query import DropQuery
from midstream.expr import user_predicates
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, finish, job, read_all
from tests.user_predicates import KILOMETRES_SQL, WITHIN_KM

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us")), ("lat", pa.float64()), ("lon", pa.float64())])
STREAMS = tuple(StreamSpec(name, SCHEMA) for name in "ABC")
ASKED = "within_km({a}.lat, {a}.lon, {b}.lat, {b}.lon, 300)"
WINDOW = 40
SQL = (
    f"SELECT A.id AS a, B.id AS b, C.id AS c FROM A, B, C WHERE {ASKED.format(a='A', b='B')}"
    f" AND {ASKED.format(a='B', b='C')} AND (A.id % 2 = B.id % 2 OR NOT {ASKED.format(a='A', b='C')})"
    f" WINDOW {WINDOW} SECONDS"
)
STEPS = 3


def rows(seed: int, step: int) -> pa.Table:
    """Places in Europe, each at a second of the step; now and then it is not known where."""
    rng, count = Random(f"{seed} {step}"), 25
    times = sorted(rng.randrange(step * 30, step * 30 + 30) for _ in range(count))
    lats = [None if rng.random() < 0.1 else rng.uniform(45, 55) for _ in range(count)]
    columns = [
        pa.array([100 * step + at for at in range(count)], pa.int64()),
        pa.array([second * 1_000_000 for second in times], pa.timestamp("us")),
        pa.array(lats, pa.float64()),
        pa.array([rng.uniform(5, 15) for _ in range(count)], pa.float64()),
    ]
    return pa.table(columns, schema=SCHEMA)


TABLES = [{spec.name: rows(seed, step) for seed, spec in enumerate(STREAMS)} for step in range(STEPS)]


def expected() -> list[tuple[int, ...]]:
    """The whole answer by DuckDB, with the distance in its own words."""
    database = duckdb.connect()
    for name in "ABC":
        database.register(name, pa.concat_tables([step[name] for step in TABLES]))
    near = {pair: f"{KILOMETRES_SQL.format(a=pair[0], b=pair[1])} <= 300" for pair in ("AB", "BC", "AC")}
    span = "epoch_us(greatest(A.ts, B.ts, C.ts)) - epoch_us(least(A.ts, B.ts, C.ts))"
    return database.sql(
        f"SELECT A.id, B.id, C.id FROM A, B, C WHERE {near['AB']} AND {near['BC']}"
        f" AND (A.id % 2 = B.id % 2 OR NOT ({near['AC']})) AND {span} <= {WINDOW} * 1000000 ORDER BY ALL"
    ).fetchall()


def found(place: Place) -> list[tuple[int, ...]]:
    return sorted((row["a"], row["b"], row["c"]) for row in read_all(place.answers("q")).to_pylist())


def feed(place: Place, *steps: int) -> None:
    for step in steps:
        place.feed_together(step, TABLES[step])


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates that no other test sees."""
    monkeypatch.setattr(user_predicates, "_KNOWN", {"within_km": WITHIN_KM})


def test_a_distance_join_of_three_streams_has_the_answers_of_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, 0)
    finish(job(spark, place, STREAMS, {"q": SQL}, lanes=2))
    feed(place, 1, 2)
    finish(job(spark, place, STREAMS, {"q": SQL}, {"q": "(A (B C))"}, lanes=2))
    assert found(place) == expected()
    assert len(expected()) > 50


def test_what_it_raises_in_a_worker_is_told_and_mended_nothing_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    place, sound = Place(tmp_path), WITHIN_KM.function
    feed(place, 0)
    finish(job(spark, place, STREAMS, {"q": SQL}))

    def fails(*columns: pa.Array) -> Any:
        if pc.any(pc.greater(columns[0], 54.0)).as_py():
            raise ValueError("too far north")
        return sound(*columns)

    ms.predicate("within_km", fails, *["DOUBLE"] * 5)
    feed(place, 1, 2)
    with pytest.raises(ms.QueryError, match=r"raised ValueError\('too far north'\) for within_km\(54\.\d+, ") as told:
        finish(job(spark, place, STREAMS, {"q": SQL}))
    assert told.value.place == "predicate within_km(DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE)"
    ms.predicate("within_km", sound, *["DOUBLE"] * 5)
    finish(job(spark, place, STREAMS, {"q": SQL}))
    assert found(place) == expected()


def test_a_query_whose_first_step_fails_begins_once_it_is_mended(spark: SparkSession, tmp_path: Path) -> None:
    place, sound = Place(tmp_path), WITHIN_KM.function

    def fails(*columns: pa.Array) -> Any:
        raise ValueError("not yet")

    ms.predicate("within_km", fails, *["DOUBLE"] * 5)
    feed(place, 0)
    for _ in range(2):  # The first step is still to be done when the job is started again.
        with pytest.raises(ms.QueryError, match="not yet"):
            finish(job(spark, place, STREAMS, {"q": SQL}))
    ms.predicate("within_km", sound, *["DOUBLE"] * 5)
    finish(job(spark, place, STREAMS, {"q": SQL}))
    feed(place, 1, 2)
    finish(job(spark, place, STREAMS, {"q": SQL}))
    assert found(place) == expected(), "its rows were not consumed without it"


def test_a_checkpoint_is_not_taken_up_without_it(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, 0)
    finish(job(spark, place, STREAMS, {"q": SQL}))
    kept = [path for path in place.checkpoint.rglob("*") if path.is_file()]
    assert any(b"within_km(" in path.read_bytes() for path in kept)
    assert not any(b"tests.user_predicates" in path.read_bytes() for path in kept)
    user_predicates._KNOWN.clear()
    with pytest.raises(
        ms.LanguageError, match=r"unknown function 'WITHIN_KM'.*register a predicate of your own before"
    ):
        job(spark, place, STREAMS, {"q": SQL})
    with pytest.raises(ms.CheckpointError, match="cannot be taken up: the predicate 'within_km' is not") as told:
        finish(job(spark, place, STREAMS, {}))
    assert told.value.place == "query q, predicate within_km"
    assert "midstream.predicate('within_km'" in told.value.remedy


def test_a_query_is_dropped_whose_predicate_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, 0)
    finish(job(spark, place, STREAMS, {"q": SQL}))
    user_predicates._KNOWN.clear()
    Checkpoint.open(place.checkpoint).send(DropQuery("q"))
    feed(place, 1)
    finish(job(spark, place, STREAMS, {}))
    assert not ms.open(place.checkpoint).manifest().queries


def test_what_cannot_be_sent_is_refused_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    lock = threading.Lock()
    ms.predicate("within_km", lambda *columns: lock and None, *["DOUBLE"] * 5)
    place = Place(tmp_path)
    feed(place, 0)
    with pytest.raises(ms.QueryError, match="cannot be sent to the workers: TypeError"):
        finish(job(spark, place, STREAMS, {"q": SQL}))
