"""A row means the same in both hosts: it enters, is late, or is a dead letter for the same reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.cli.spark_job import job_of
from midstream.embedded.job_run import FileJob
from midstream.spark.declared import declared_schema
from midstream.sql.job_file import parse_job
from tests.spark.drive import Place, finish, read_all

DECLARED = "k BIGINT, x DOUBLE, d DECIMAL(6, 2), day DATE, yes BOOLEAN, at TIMESTAMP, s VARCHAR, ts TIMESTAMP"
GOOD = {
    "k": "1", "x": "1.5", "d": "1.25", "day": "2024-02-29", "yes": "true", "at": "2024-01-01T00:00:00Z", "s": "a",
    "ts": "2024-01-01 00:00:10",
}  # fmt: skip
CHANGES: tuple[dict[str, str | None], ...] = (
    {},
    {"k": "abc"},
    {"k": "4.5"},
    {"k": None},
    {"k": "99999999999999999999"},
    {"x": "much"},
    {"x": "NaN"},
    {"d": "12345.00"},
    {"day": "2023-02-29"},
    {"yes": "maybe"},
    {"at": "noon"},
    {"ts": "soon"},
    {"ts": None},
    {"ts": "2024-01-01T02:00:10.0000019+02:00"},
    {"ts": "2024-01-01 00:00:05"},
    {"ts": "2024-01-01", "k": "2"},
    {"k": "abc", "ts": None},
    {"k": "abc", "day": "never"},
)
"""What is other than in `GOOD`, row by row."""

FIRST = [GOOD]
SECOND = [{**GOOD, **change} for change in CHANGES]
SELECT = "SELECT * FROM A"


def tables() -> list[pa.Table]:
    return [pa.Table.from_pylist(rows, pa.schema([(c, pa.string()) for c in GOOD])) for rows in (FIRST, SECOND)]


def embedded(sql: str) -> tuple[pa.Table, ms.Engine]:
    engine = ms.Engine()
    engine.create_stream("A", DECLARED, timestamp="ts")
    engine.add_query("q", sql)
    return pa.concat_tables([engine.push({"A": table})["q"] for table in tables()]), engine


def fed(root: Path) -> Place:
    place = Place(root)
    for step, table in enumerate(tables()):
        place.feed("A", step, table)
    return place


def frame(spark: SparkSession, place: Place) -> DataFrame:
    reader = spark.readStream.schema(", ".join(f"{c} STRING" for c in GOOD)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(place.root / "in" / "A"))


def rows_of(table: pa.Table) -> list[str]:
    """The rows as text, in order; a zone makes no other moment."""
    return sorted(str({c: str(v).removesuffix("+00:00") for c, v in row.items()}) for row in table.to_pylist())


def test_both_hosts_admit_the_same(spark: SparkSession, tmp_path: Path) -> None:
    answer, engine = embedded(SELECT)
    place = fed(tmp_path)
    asked = ms.Job(spark, place.checkpoint, lanes=2).stream("A", frame(spark, place), "ts", schema=DECLARED)
    run = finish(asked.query("q", SELECT, sink=ms.sinks.files(place.answers("q"))))
    found, late, dead = (read_all(p) for p in (place.answers("q"), *outputs(place)))
    assert answer.num_rows == 5 and engine.late["A"].num_rows == 2 and engine.dead_letters["A"].num_rows == 12
    assert found.schema.remove_metadata() == answer.schema.remove_metadata()
    assert rows_of(found) == rows_of(answer)
    assert rows_of(late.select(engine.late["A"].column_names)) == rows_of(engine.late["A"])
    assert rows_of(dead.select(engine.dead_letters["A"].column_names)) == rows_of(engine.dead_letters["A"])
    progress = engine.manifest.progress["A"]
    assert place.manifest().progress["A"] == progress
    assert [run.status()["streams"]["A"][k] for k in ("rows", "late", "rejected")] == [5, 2, 12]


def outputs(place: Place) -> tuple[Path, Path]:
    return place.checkpoint / "late" / "A", place.checkpoint / "dead_letters" / "A"


def test_columns_that_no_query_reads_are_held_to_their_types_too(spark: SparkSession, tmp_path: Path) -> None:
    """Else whether a row enters would hang on who asks."""
    sql = "SELECT x.s, y.s AS other FROM A x [ROWS 2], A y [ROWS 2] WHERE x.s = y.s"
    answer, engine = embedded(sql)
    place = fed(tmp_path)
    asked = ms.Job(spark, place.checkpoint, lanes=2).stream("A", frame(spark, place), "ts", schema=DECLARED)
    finish(asked.query("q", sql, sink=ms.sinks.files(place.answers("q"))))
    assert rows_of(read_all(place.answers("q"))) == rows_of(answer)
    assert place.manifest().progress["A"] == engine.manifest.progress["A"]
    dead = read_all(outputs(place)[1])
    assert all(name.endswith(".parquet") for name in dead.column("_file").to_pylist())
    dead = dead.drop_columns(["_file"])
    assert rows_of(dead) == rows_of(engine.dead_letters["A"].select(dead.column_names))
    assert set(dead.column_names) == {*GOOD, "_reason"}


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_a_job_file_loses_no_value_that_cannot_be_read(spark: SparkSession, tmp_path: Path, format: str) -> None:
    place, source = fed(tmp_path), tmp_path / "files"
    source.mkdir()
    for step, rows in enumerate((FIRST, SECOND)):
        file = source / f"{step}.{format}"
        if format == "json":
            lines = [{c: int(v) if c == "k" and v == "1" else v for c, v in row.items()} for row in rows]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        elif format == "csv":
            file.write_text("".join(",".join(row[c] or "" for c in GOOD) + "\n" for row in rows))
        else:
            (place.root / "in" / "A" / f"{step:05d}.parquet").rename(file)
        os.utime(file, (1_600_000_000 + step, 1_600_000_000 + step))
    text = f"""
        checkpoint = "{place.checkpoint}"
        [streams.A]
        format = "{format}"
        path = "{source}"
        schema = "{DECLARED.replace("VARCHAR", "STRING")}"
        timestamp = "ts"
        options = {{ maxFilesPerTrigger = 1 }}
        [queries.q]
        sql = "{SELECT}"
        sink = {{ path = "{place.answers("q")}" }}
    """
    _, engine = embedded(SELECT)
    finish(job_of(spark, parse_job(text)))
    beside = text.replace(str(place.checkpoint), str(tmp_path / "beside")).replace(
        str(place.answers("q")), str(tmp_path / "q")
    )
    with FileJob(parse_job(beside)) as job:
        while job.step():
            pass
        expected = job.engine.dead_letters["A"]
    dead = read_all(outputs(place)[1])
    assert rows_of(dead.select(expected.column_names)) == rows_of(expected)
    assert dead.num_rows == engine.dead_letters["A"].num_rows
    assert place.manifest().progress["A"] == engine.manifest.progress["A"]
    assert place.manifest().streams["A"].columns == engine.manifest.streams["A"].columns


@pytest.mark.parametrize(
    ("ddl", "types"),
    [
        ("k VARCHAR, ts TIMESTAMP", ["string", "timestamp_ntz"]),
        ("k VARCHAR(3), n TEXT, ts TIMESTAMP_LTZ", ["string", "string", "timestamp"]),
        ("s STRUCT<a: VARCHAR, t: TIMESTAMP>", ["struct<a:string,t:timestamp_ntz>"]),
        ("varchar VARCHAR, d DECIMAL(10, 2) NOT NULL", ["string", "decimal(10,2)"]),
    ],
)
def test_spark_reads_a_schema_whose_spelling_it_does_not_know(ddl: str, types: list[str]) -> None:
    assert [field.dataType.simpleString() for field in declared_schema(ddl)] == types


@pytest.mark.parametrize("ddl", ["k TIME, a VARCHAR", "k UBIGINT", "k NOPE", "k"])
def test_a_schema_that_spark_cannot_read_is_refused(ddl: str) -> None:
    with pytest.raises(ms.MidstreamError, match=r"k|NOPE"):
        declared_schema(ddl)
