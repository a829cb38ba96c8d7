"""Where results go: files of every format, functions, and the outputs for rows that were late or could not be read."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, finish, job, read_all

SECOND = 1_000_000


def stream(name: str, *columns: tuple[str, pa.DataType], lateness: int = 0) -> StreamSpec:
    return StreamSpec(name, pa.schema([*columns, ("ts", pa.timestamp("us"))]), "ts", lateness)


def table(spec: StreamSpec, **columns: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(values, spec.schema.field(name).type) for name, values in columns.items()}).select(
        spec.schema.names
    )


A = stream("A", ("k", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("raw", pa.binary()))
ROWS = table(
    A,
    k=[1, 2, None, 4],
    s=["plain", 'quo"te, comma\nline', "日本", None],
    f=[1.5, float("nan"), float("-inf"), None],
    raw=[b"\x00\xff", None, b"", b"x"],
    ts=[0, 1, 2, 3],
)
EVERYTHING = "SELECT k, s, f, raw, TRY_CAST(f AS DECIMAL(10, 2)) AS d, ts, _ts FROM A"


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.feed("A", 0, ROWS)
    asked = job(spark, place, [A], {})
    asked.query("q", EVERYTHING, sink=ms.sinks.files(tmp_path / "out", format="json"))
    finish(asked)
    files = sorted((tmp_path / "out").glob("step=00000000/*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert {
        "k": 1, "s": "plain", "f": 1.5, "raw": "AP8=", "d": "1.50",
        "ts": "1970-01-01T00:00:00.000000", "_ts": "1970-01-01T00:00:00.000000",
    } in rows  # fmt: skip
    assert [row["f"] for row in rows if row.get("k") == 2] == ["NaN"]
    assert [row["f"] for row in rows if "k" not in row] == ["-Infinity"]
    assert {row.get("s") for row in rows} == {"plain", 'quo"te, comma\nline', "日本", None}
    back = spark.read.schema("k BIGINT, s STRING, f DOUBLE, raw BINARY, _ts TIMESTAMP").json(str(tmp_path / "out"))
    assert {row["raw"] and bytes(row["raw"]) for row in back.collect()} == {b"\x00\xff", None, b"", b"x"}


def test_csv(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.feed("A", 0, ROWS)
    asked = job(spark, place, [A], {})
    asked.query("q", EVERYTHING, sink={"path": str(tmp_path / "out"), "format": "csv"})
    finish(asked)
    rows: list[dict[str, str]] = []
    for file in sorted((tmp_path / "out").glob("step=*/*.csv")):
        with file.open(encoding="utf-8", newline="") as opened:
            rows += list(csv.DictReader(opened))
    assert {row["s"] for row in rows} == {"plain", 'quo"te, comma\nline', "日本", ""}
    assert {row["k"] for row in rows} == {"1", "2", "", "4"}
    assert {row["raw"] for row in rows} == {"AP8=", "", "eA=="}


def test_a_function_is_given_each_step_once(spark: SparkSession, tmp_path: Path) -> None:
    place, calls = Place(tmp_path), []
    place.feed("A", 0, ROWS)
    place.feed("A", 1, ROWS.slice(0, 0))
    place.feed("A", 2, table(A, k=[9], s=["x"], f=[0.0], raw=[b""], ts=[9]))

    def sink(rows: DataFrame, step: int, query: str) -> None:
        assert rows.sparkSession is spark
        calls.append((step, query, rows.schema.simpleString(), sorted(r["k"] or 0 for r in rows.collect())))

    asked = job(spark, place, [A], {})
    asked.query("q", "SELECT k, ts, _ts FROM A", sink=sink)
    run = finish(asked)
    shape = "struct<k:bigint,ts:timestamp_ntz,_ts:timestamp_ntz>"
    assert calls == [(0, "q", shape, [0, 1, 2, 4]), (2, "q", shape, [9])]
    assert "sink" in run.status()["queries"]["q"]["sink"]["function"]
    assert not list((place.checkpoint / "staging").rglob("*.parquet"))


def test_a_function_that_fails_is_called_again_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    place, calls = Place(tmp_path), []
    place.feed("A", 0, ROWS)

    def failing(rows: DataFrame, step: int, query: str) -> None:
        calls.append((step, rows.count()))
        if len(calls) == 1:
            raise ValueError("the database is away")

    def make() -> ms.Job:
        return job(spark, place, [A], {}).query("q", "SELECT k FROM A", sink=failing)

    with pytest.raises(ValueError, match="the database is away"):
        finish(make())
    assert place.manifest().step == 0
    place.feed("A", 1, ROWS)
    with pytest.raises(ms.SinkError, match="which this program does not have"):
        finish(job(spark, place, [A], {}))
    finish(make())
    assert calls == [(0, 4), (0, 4), (1, 1)], "three rows of the second file are late"


def test_late_rows_and_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    a = stream("A", ("k", pa.int64()), ("v", pa.int64()), lateness=2 * SECOND)
    b = stream("B", ("k", pa.int64()))
    at = [0, 10 * SECOND, None, 10 * SECOND]
    place.feed("A", 0, table(a, k=[1, 1, 1, None], v=[0, 9, 9, 9], ts=at))
    place.feed("B", 0, table(b, k=[1], ts=[10 * SECOND]))
    late_ones = [1, 2, 3, 4, 5, 6]
    at = [n * SECOND for n in (8, 11, *[7] * len(late_ones))]
    # The late rows are of several lanes of one task, by whichever column they are dealt.
    place.feed("A", 1, table(a, k=[1, 1, *late_ones], v=[9, 9, *late_ones], ts=at))
    place.feed("B", 1, table(b, k=[1, None], ts=[None, None]))
    # The selection must not hide a late row; two lane groups must not report it twice.
    declared = {
        "q": "SELECT A.ts, B.ts AS bts FROM A, B WHERE A.k = B.k AND A.v > 5 WINDOW 20 SECONDS",
        "other": "SELECT A.v FROM A, B WHERE A.v = B.k WINDOW 20 SECONDS",
    }
    run = finish(job(spark, place, [a, b], declared, lanes=4))
    streams = run.status()["streams"]
    assert {n: (s["rows"], s["late"], s["rejected"]) for n, s in streams.items()} == {"A": (5, 6, 1), "B": (1, 0, 2)}
    late = read_all(place.checkpoint / "late" / "A")
    assert sorted(late["v"].to_pylist()) == late_ones
    assert set(late["_watermark"].to_pylist()) == {datetime(1970, 1, 1, 0, 0, 8)}
    assert late["ts"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 7)] * 6
    dead = read_all(place.checkpoint / "dead_letters" / "B")
    assert dead["_reason"].to_pylist() == ["timestamp column 'ts' is NULL"] * 2
    assert read_all(place.checkpoint / "dead_letters" / "A").num_rows == 1
    assert sorted(read_all(place.answers("q"))["ts"].to_pylist()) == [
        datetime(1970, 1, 1, 0, 0, second) for second in (8, 10, 11)
    ]
    found_text = {(e.kind, e.stream): e.rows for e in run.events if e.kind.startswith("rows_")}  # type: ignore[attr-defined]
    assert found_text == {("rows_late", "A"): 6, ("rows_rejected", "A"): 1, ("rows_rejected", "B"): 2}


def test_what_a_query_cannot_evaluate_is_a_dead_letter_of_it(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    a, b = stream("A", ("k", pa.int64()), ("s", pa.string())), stream("B", ("k", pa.int64()))
    place.feed("A", 0, table(a, k=[1, 2, 3], s=["7", "x", "9"], ts=[0, 1, 2]))
    place.feed("B", 0, table(b, k=[1, 2, 3], ts=[0, 1, 2]))
    place.feed("A", 1, table(a, k=[4, 5], s=["y", "8"], ts=[3, 4]))
    place.feed("B", 1, table(b, k=[4, 4, 5], ts=[3, 4, 5]))
    declared = {
        "output": "SELECT A.k, CAST(A.s AS INT) AS n FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS",
        "row": "SELECT A.k FROM A, B WHERE A.k = B.k AND CAST(A.s AS INT) > 7 AND A.k <> 2 WINDOW 20 SECONDS",
    }
    asked = job(spark, place, [a, b], declared, lanes=2)
    both = f"{declared['row']}".replace("A.k = B.k AND", "A.k = B.k AND CAST(A.s || '1' AS INT) > 0 AND")
    asked.query("nodes", both.replace("SELECT A.k", "SELECT CAST(A.s AS INT) AS n"), spread="psp_d", nodes=2)
    run = finish(asked)
    assert sorted(read_all(place.checkpoint / "results" / "nodes")["n"].to_pylist()) == [8, 9]
    assert read_all(place.checkpoint / "rejected" / "nodes")["A.s"].to_pylist() == ["y"]
    assert sorted(read_all(place.answers("output"))["n"].to_pylist()) == [7, 8, 9]
    assert sorted(read_all(place.answers("row"))["k"].to_pylist()) == [3, 5]
    letters = {name: read_all(place.checkpoint / "rejected" / name) for name in declared}
    assert sorted(letters["output"]["A.s"].to_pylist()) == ["x", "y", "y"]
    assert letters["row"]["A.s"].to_pylist() == ["y"] and letters["row"]["B.k"].to_pylist() == [None]
    assert {r for t in letters.values() for r in t["_reason"].to_pylist()} == {
        "cast(A.s) cannot be evaluated", "cast(A.s) > 7 cannot be evaluated",
    }  # fmt: skip
    assert {n: q["rejected"] for n, q in run.status()["queries"].items()} == {"output": 3, "row": 1, "nodes": 1}


@pytest.mark.parametrize(
    ("ddl", "unit", "values", "times"),
    [
        ("ts STRING", None, ["1970-01-01 00:00:01", "soon", None, "1970-01-01T00:00:02Z"], [1, 2]),
        ("ts DATE", None, ["1970-01-01", None, "1970-01-03"], [0, 2 * 86_400]),
        ("ts BIGINT", "us", [3 * SECOND, None, -SECOND, 2**63 - 1, -(2**63)], [3, -1]),
        ("ts DATE", None, ["1970-01-01", "+500000-01-01", "+5881580-07-11"], [0]),
        ("ts INT", "us", [5, None], [0]),
        ("ts BIGINT", "ms", [3_000, None, -1_000, 2**62], [3, -1]),
        ("ts INT", "s", [3, None, -1], [3, -1]),
    ],
)
def test_event_times_of_other_types(
    spark: SparkSession, tmp_path: Path, ddl: str, unit: str | None, values: list[Any], times: list[int]
) -> None:
    rows = [(n, value) for n, value in enumerate(values)]
    text = spark.createDataFrame(rows, "n INT, ts STRING").selectExpr("n", f"CAST(ts AS {ddl[3:]}) AS ts")
    text.coalesce(1).write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(text.schema).parquet(str(tmp_path / "in"))
    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2).stream("A", frame, timestamp="ts", unit=unit)
    asked.query("q", "SELECT n, _ts FROM A", sink=ms.sinks.files(tmp_path / "out"))
    run = finish(asked)
    found = sorted(int(t.replace(tzinfo=UTC).timestamp()) for t in read_all(tmp_path / "out")["_ts"].to_pylist())
    assert found == sorted(times)
    assert run.status()["streams"]["A"]["rejected"] == len(values) - len(times)
    dead = read_all(tmp_path / "checkpoint" / "dead_letters" / "A")
    if ddl == "ts STRING":
        reasons = dict(zip(dead["ts"].to_pylist(), dead["_reason"].to_pylist(), strict=True))
        assert reasons == {
            None: "timestamp column 'ts' is NULL",
            "soon": "column 'ts': cannot read 'soon' as timestamp[us]",
        }
    if unit == "ms":
        reasons = dict(zip(dead["ts"].to_pylist(), dead["_reason"].to_pylist(), strict=True))
        assert reasons[2**62] == f"timestamp column 'ts': {2**62} ms are beyond all event times"


@pytest.mark.parametrize("files", [True, False], ids=["read in tasks", "read by Spark"])
def test_times_that_no_window_can_be_added_to(spark: SparkSession, tmp_path: Path, files: bool) -> None:
    """Dead letters, which show such times as texts, however rows are filtered and counted; they move no watermark."""
    given = {"n": pa.array([0, 1, 2, 3], pa.int32()), "ts": pa.array([5, 2**63 - 1, -(2**62), 7], pa.timestamp("us"))}
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table(given), tmp_path / "in" / "rows.parquet")
    frame = spark.readStream.schema("n INT, ts TIMESTAMP_NTZ").parquet(str(tmp_path / "in"))
    frame = frame if files else frame.where("n > -1")
    queries = {
        "few": "SELECT n FROM A WHERE n = 3",
        "windows": "SELECT COUNT(*) AS n FROM A GROUP BY TUMBLE(ts, INTERVAL '2' MICROSECONDS)",
        "last": "SELECT n FROM A [ROWS 1]",
    }
    for name, sql in queries.items():
        asked = ms.Job(spark, tmp_path / f"checkpoint {name}", lanes=2).stream("A", frame, timestamp="ts")
        asked.query("q", sql, sink=ms.sinks.files(tmp_path / name))
        run = finish(asked)
        progress = run.status()["streams"]["A"]
        assert (progress["rows"], progress["late"], progress["rejected"]) == (2, 0, 2), name
        dead = read_all(tmp_path / f"checkpoint {name}" / "dead_letters" / "A")
        found = sorted(zip(dead["ts"].to_pylist(), dead["_reason"].to_pylist(), strict=True))
        assert found == [
            (f"<value out of range: {time}>", f"timestamp column 'ts': {time} us are beyond all event times")
            for time in (-(2**62), 2**63 - 1)
        ]
    assert read_all(tmp_path / "windows")["n"].to_pylist() == [1]
    assert read_all(tmp_path / "few")["n"].to_pylist() == [3]


def test_the_time_zone_of_the_session_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.feed("A", 0, ROWS)
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        finish(job(spark, place, [A], {"q": "SELECT ts, _ts FROM A"}))
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    found = read_all(place.answers("q"))
    assert sorted(found["ts"].cast(pa.int64()).to_pylist()) == [0, 1, 2, 3]
    assert found["ts"].cast(pa.int64()) == found["_ts"].cast(pa.int64())


def test_results_stand_in_a_folder_for_each_step(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.feed("A", 0, ROWS)
    place.feed("A", 1, table(A, k=[5], s=[""], f=[0.0], raw=[b""], ts=[10]))
    finish(job(spark, place, [A], {"q": "SELECT k FROM A"}))
    assert [p.name for p in sorted(place.answers("q").glob("step=*"))] == ["step=00000000", "step=00000001"]
    assert sorted(r["k"] or 0 for r in spark.read.parquet(str(place.answers("q"))).collect()) == [0, 1, 2, 4, 5]
    assert pq.read_table(place.answers("q") / "step=00000001")["k"].to_pylist() == [5]


def test_windows_to_group_by_are_those_of_sparks_own_window(spark: SparkSession, tmp_path: Path) -> None:
    rows = [table(B, k=[n % 3 for n in seconds], ts=[n * SECOND for n in seconds]) for seconds in WINDOWED]
    place = Place(tmp_path)
    for step, part in enumerate(rows):
        place.feed("B", step, part)
    by = "k, window(ts, '10 seconds', '4 seconds')"
    select = f"SELECT k, COUNT(*) AS n, window.start AS began, window.end AS ended FROM B GROUP BY {by}"
    asked = job(spark, place, [B], {})
    asked.query("q", select, sink=ms.sinks.files(tmp_path / "out"))
    finish(asked)
    spark.createDataFrame(pa.concat_tables(rows).to_pandas()).createOrReplaceTempView("B")
    reached = max(n for seconds in WINDOWED for n in seconds)
    final = [row for row in spark.sql(select).collect() if row["ended"].timestamp() <= reached]
    answered = read_all(tmp_path / "out").to_pylist()
    found = [(r["k"], r["n"], r["began"].replace(tzinfo=UTC).timestamp()) for r in answered]
    assert sorted(found) == sorted((r["k"], r["n"], r["began"].timestamp()) for r in final)
    assert len(found) > 10


B = stream("B", ("k", pa.int64()))
WINDOWED = ([0, 1, 3, 4, 9, 10], [10, 13, 14, 14, 20], [27, 40])
"""The seconds at which rows come, by step; sizes that are no multiple of the slide, and one row at a window's edge."""
