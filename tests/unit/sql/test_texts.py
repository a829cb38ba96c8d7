"""Durations, schemas in words, job files."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.expr.duration import parse_duration
from midstream.model.errors import LanguageError
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_file import parse_job, read_job_file

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        ("5 seconds", 5 * SECOND),
        ("0 seconds", 0),
        (" 1  HOUR 30 Minutes ", 5400 * SECOND),
        ("2 weeks", 14 * 86_400 * SECOND),
        ("1.5 ms", 1500),
        ("7 µs", 7),
        ("250milliseconds", 250_000),
        (42, 42),
        (timedelta(days=1, microseconds=3), 86_400 * SECOND + 3),
    ],
)
def test_durations(value: str | int | timedelta, microseconds: int) -> None:
    assert parse_duration(value) == microseconds


@pytest.mark.parametrize(
    "value", ["", "5", "five seconds", "5 months", "-1 second", "0.5 us", -1, True, 1.5, "5 s x", "9e9 s"]
)
def test_no_durations(value: object) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_duration(value, what="the lateness")  # type: ignore[arg-type]
    assert "the lateness" in raised.value.message and raised.value.remedy


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("BIGINT", pa.int64()),
        ("LONG", pa.int64()),
        ("INTEGER", pa.int32()),
        ("SMALLINT", pa.int16()),
        ("SHORT", pa.int16()),
        ("BYTE", pa.int8()),
        ("UBIGINT", pa.uint64()),
        ("REAL", pa.float32()),
        ("DOUBLE PRECISION", pa.float64()),
        ("BOOLEAN", pa.bool_()),
        ("STRING", pa.string()),
        ("VARCHAR(20)", pa.string()),
        ("BINARY", pa.binary()),
        ("BLOB", pa.binary()),
        ("DATE", pa.date32()),
        ("TIME", pa.time64("us")),
        ("TIMESTAMP", pa.timestamp("us")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NS", pa.timestamp("ns")),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("NUMERIC(5)", pa.decimal128(5, 0)),
        ("ARRAY<INT>", pa.list_(pa.int32())),
        ("INT[]", pa.list_(pa.int32())),
        ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float64())),
        ("STRUCT<a: INT, b: STRING>", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("STRUCT(a INT, b VARCHAR[])", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
    ],
)
def test_type_names(name: str, type: pa.DataType) -> None:
    assert parse_ddl(f"x {name}, y INT").field("x").type == type


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "is not a list of columns", "line 1, column 1"),
        ("k", "is not a list of columns", "line 1, column 1"),
        ("k BIGINT,\n  j BIGGISH", "unknown type BIGGISH", "line 2, column 3"),
        ("k INT, K INT", "twice", "line 1, column 8"),
        ("k INT); DROP TABLE t; --", "cannot be read", "line"),
        ("m DECIMAL(50, 2)", "does not exist", "line 1, column 1"),
        ("x void", "unknown type", "line 1, column 1"),
    ],
)
def test_no_schemas(text: str, message: str, place: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_ddl(text)
    assert message in raised.value.message
    assert raised.value.place.startswith(place) and raised.value.remedy


JOB = """
checkpoint = "ckpt"
lanes = 2
[streams.A]
format = "parquet"
path = "in/A"
schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"
timestamp = "ts"
lateness = "5 seconds"
idle_timeout = "1 minute"
options = { maxFilesPerTrigger = 1, cleanSource = true }
[queries.pairs]
sql = "SELECT A.k FROM A"
plan = "A"
sink = { format = "parquet", path = "out/pairs" }
"""


def test_a_job_file(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    job = read_job_file(path)
    assert (job.checkpoint, job.lanes) == (f"{tmp_path}/ckpt", 2)
    stream = job.streams["A"]
    assert (stream.format, stream.path, stream.timestamp) == ("parquet", f"{tmp_path}/in/A", "ts")
    assert (stream.lateness, stream.idle_timeout) == (5 * SECOND, 60 * SECOND)
    assert stream.options == {"maxFilesPerTrigger": "1", "cleanSource": "true"}
    assert job.sharing == "auto" and job.queries["pairs"].history
    query = job.queries["pairs"]
    assert (query.sql, query.plan) == ("SELECT A.k FROM A", "A")
    assert query.sink == {"format": "parquet", "path": f"{tmp_path}/out/pairs"}


@pytest.mark.parametrize(
    ("old", "new", "message", "place"),
    [
        ('checkpoint = "ckpt"', "", "checkpoint is missing", "job file, checkpoint"),
        ("lanes = 2", "lanes = 0", "less than 1", "job file, lanes"),
        ("lanes = 2", "lanes = true", "lanes is True", "job file, lanes"),
        ("lanes = 2", "sharing = true", "sharing is True", "job file, sharing"),
        ('plan = "A"', 'history = "no"', "history is 'no'", "job file, [queries.pairs], history"),
        ("lanes = 2", "lane = 2", "lane is unknown", "job file, lane"),
        ("lanes = 2", "lanes = ", "not TOML", "job file, column"),
        ('format = "parquet"\npath = "in/A"', "", "format is missing", "job file, [streams.A], format"),
        ('timestamp = "ts"', 'timestamp = "time"', "which is not a column", "job file, [streams.A], timestamp"),
        ("v DOUBLE", "v DUBLE", "unknown type DUBLE", "job file, [streams.A], schema, line 1, column 25"),
        ("5 seconds", "5 snds", "unknown unit", "job file, [streams.A], lateness"),
        ("[streams.A]", "[stream.A]", "unknown here", "job file, stream"),
        ('plan = "A"', "plan = 3", "plan is 3", "job file, [queries.pairs], plan"),
        ("sink =", "sinks =", "sinks is unknown", "job file, [queries.pairs], sinks"),
    ],
)
def test_no_job_files(old: str, new: str, message: str, place: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_job(JOB.replace(old, new))
    assert message in raised.value.message
    assert re.sub(r"line \d+, ", "", raised.value.place, count=1).startswith(place) and raised.value.remedy


def test_a_job_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LanguageError, match="cannot be read"):
        read_job_file(tmp_path / "none.toml")
