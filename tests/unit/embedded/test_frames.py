"""Whatever rows are pushed as, the answers are those of Arrow tables; results convert as easily."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import midstream as ms
from midstream.pipeline.frames import ArrowArray, ArrowStream, tables_of

DDL = "k BIGINT, s VARCHAR, ts TIMESTAMP"
ROWS = [
    {"k": 1, "s": "one", "ts": dt.datetime(2026, 1, 1, 0, 0, 1)},
    {"k": 2, "s": None, "ts": dt.datetime(2026, 1, 1, 0, 0, 2)},
]
TABLE = pa.Table.from_pylist(ROWS)


class Streamed:
    """Some other package's frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class Batched:
    """Some other package's batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        found: tuple[object, object] = TABLE.to_batches()[0].__arrow_c_array__(requested_schema)
        return found


def made() -> ms.Engine:
    engine = ms.Engine()
    engine.create_stream("A", DDL, timestamp="ts")
    engine.add_query("q", "SELECT A.k, A.s, A.ts FROM A")
    return engine


@pytest.mark.parametrize(
    "give",
    [
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1)),
        lambda: ROWS,
        lambda: tuple(ROWS),
        lambda: TABLE.to_pandas(),
        lambda: TABLE.to_pandas().set_index(pd.Index(["x", "y"], name="other")),
        lambda: pl.from_arrow(TABLE),
        lambda: pl.DataFrame(ROWS),
        Streamed,
        Batched,
    ],
)
def test_the_answer_is_that_of_the_table(give: Callable[[], Any]) -> None:
    found = made().push({"A": give()})["q"]
    assert found == made().push({"A": TABLE})["q"] and found.num_rows == 2


def test_results_convert() -> None:
    found = made().push({"A": ROWS})["q"]
    assert found.to_pylist() == ROWS
    assert found.to_pandas()["k"].tolist() == [1, 2]
    frame = pl.from_arrow(found)
    assert isinstance(frame, pl.DataFrame) and frame["s"].to_list() == ["one", None]
    again = made().push({"A": frame})["q"]
    assert again == found, "and what was converted can be pushed"


def test_rows_may_lack_keys_and_bad_values_are_dead_letters() -> None:
    engine = made()
    time = dt.datetime(2026, 1, 1)
    rows = [{"ts": time, "k": 1, "s": "x"}, {"ts": time, "k": "x"}, {"k": 3, "ts": "2026-01-01 00:00:05", "more": {}}]
    assert engine.push({"A": rows})["q"].to_pydict()["k"] == [1, 3]
    (dead,) = engine.dead_letters["A"].to_pylist()
    assert "cannot read 'x' as int64" in dead["_reason"]


def test_an_empty_list_brings_nothing() -> None:
    engine = made()
    assert engine.push({"A": []})["q"].num_rows == 0
    assert engine.times[-1].rows == {}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"k": [1]}, "a dict cannot be the rows of stream 'A'"),
        ("k,ts", "a str cannot be the rows"),
        ([1, 2], "row 0 of stream 'A' is a int"),
        ([{"k": 1}, ("k", 1)], "row 1 of stream 'A' is a tuple"),
        (pl.DataFrame(ROWS).lazy(), "a LazyFrame cannot be the rows"),
        (pd.DataFrame, "a type cannot be the rows"),
        (pd.DataFrame({"k": [object()]}), "cannot be read"),
        (None, "a NoneType cannot be the rows"),
    ],
)
def test_bad_shapes_say_what_to_push(rows: Any, message: str) -> None:
    engine = made()
    with pytest.raises(ms.InputError, match=message) as error:
        engine.push({"A": rows})
    assert error.value.remedy and error.value.place == "push, stream A"
    assert engine.manifest.step == -1 and engine.push({"A": ROWS})["q"].num_rows == 2


def test_rows_are_pushed_by_stream() -> None:
    with pytest.raises(ms.InputError, match="push needs a mapping from streams to rows"):
        made().push(ROWS)  # type: ignore[arg-type]


def test_the_package_shows_what_it_imports_when_asked() -> None:
    assert {"Job", "sinks", "results_stream", "Engine", "events"} <= set(dir(ms))
    assert set(ms.__all__) <= set(dir(ms))


def test_tables_pass_untouched_and_packages_are_known_by_their_interface() -> None:
    assert tables_of({"A": TABLE})["A"] is TABLE and tables_of(None) == {}
    assert isinstance(pl.DataFrame(), ArrowStream) and isinstance(pd.DataFrame(), ArrowStream)
    assert isinstance(Batched(), ArrowArray)


ALONE = [
    ("BLOB", b"\xff\x00", 1.5),
    ("TIME", dt.time(12, 30), object()),
    ("INTERVAL", dt.timedelta(microseconds=-5), [1, "x"]),
    ("TIMESTAMP", dt.datetime(2020, 1, 1, 5), "bad"),
    ("TIMESTAMP", dt.datetime(2020, 1, 1, 5), 7),
    ("DECIMAL(38,0)", 2**70, "bad"),
    ("STRUCT(a BIGINT)", {"a": 1}, {"a": "bad"}),
    ("STRUCT(a BIGINT)", {"a": None}, "bad"),
    ("STRUCT(a STRUCT(b BIGINT[]))", {"a": {"b": [1]}}, {"a": {"b": ["bad"]}}),
    ("BIGINT[]", [1, None], ["bad"]),
    ("BIGINT[]", [], [2.5]),
    ("VARCHAR[]", ["x"], {"x": 1}),
    ("VARCHAR", "x", "\ud800"),
    ("MAP(VARCHAR, BIGINT)", {"k": 1, "l": None}, {"k": "bad"}),
    ("MAP(VARCHAR, BIGINT)", [("k", 1)], {None: 1}),
    ("MAP(VARCHAR, BIGINT)", {}, [1]),
    ("MAP(VARCHAR, BIGINT[])", {"k": [1]}, {"k": [1, "bad"]}),
]
"""A type, a value of it, and one that is none of it."""


@pytest.mark.parametrize(("kind", "good", "bad"), ALONE)
@pytest.mark.parametrize("order", [1, -1])
def test_a_bad_value_changes_none_beside_it(kind: str, good: Any, bad: Any, order: int) -> None:
    engine = ms.Engine()
    engine.create_stream("A", f"x {kind}, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT x FROM A")
    rows = [{"x": value, "ts": dt.datetime(2026, 1, 1)} for value in (good, bad, None)]
    (found, nothing) = sorted(engine.push({"A": rows[::order]})["q"]["x"].to_pylist(), key=lambda one: one is None)
    assert (dict(found) if isinstance(good, dict) and isinstance(found, list) else found) == good and nothing is None
    (dead,) = engine.dead_letters["A"].to_pylist()
    assert dead["_reason"].startswith("column 'x': ")


@pytest.mark.parametrize("kind", ["VARCHAR", "BIGINT", "BIGINT[]", "STRUCT(x BIGINT)", "MAP(VARCHAR, BIGINT)"])
@pytest.mark.parametrize("levels", [120, 700, 100_000])
def test_a_value_that_is_nested_too_deep_is_a_dead_letter(kind: str, levels: int) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: tuple[Any, ...] = ([], {"x": None}, endless)
    for _ in range(levels):
        deep = ([deep[0]], {"x": deep[1]}, endless)
    engine = ms.Engine()
    engine.create_stream("A", f"x {kind}, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT x FROM A")
    for value in deep:
        rows = [{"x": one, "ts": dt.datetime(2026, 1, 1), "other": value} for one in (value, None)]
        assert engine.push({"A": rows})["q"]["x"].to_pylist() == [None]
    reasons = engine.dead_letters["A"]["_reason"].to_pylist()
    assert reasons == ["column 'x': the value is nested more than 100 levels deep"] * 3


def test_values_that_arrow_would_unite_are_read_each_as_it_is() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "x TIMESTAMP, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT x FROM A")
    values = [dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5)]
    found = engine.push({"A": [{"x": value, "ts": dt.datetime(2026, 1, 1)} for value in values]})["q"]
    assert found["x"].to_pylist() == [dt.datetime(2026, 1, 1, hour) for hour in (0, 5)]


def test_a_dead_letter_shows_what_was_given() -> None:
    engine = made()
    time = dt.datetime(2026, 1, 1)
    assert (
        engine.push({"A": [{"k": 1, "s": "x", "ts": None}, {"k": [1, "x"], "s": 2.5, "ts": time}]})["q"].num_rows == 0
    )
    dead = engine.dead_letters["A"].to_pydict()
    assert (dead["k"], dead["s"], dead["ts"]) == (["1", "[1, 'x']"], ["x", "2.5"], [None, time])


@pytest.mark.parametrize(
    "values", [(b"\xff", 1.5), (dt.time(1), "x"), (dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5)), (1, 2**70)]
)
def test_a_table_has_one_type_in_a_column(values: tuple[Any, ...]) -> None:
    with pytest.raises(ms.InputError, match="no column type fits all values of 'x'") as refused:
        made().table("t", [{"x": value} for value in values])
    assert refused.value.place == "table t" and "values of one type" in refused.value.remedy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "a int cannot be the rows of table 't'"),
        ([{"k": 1}, 7], "row 1 of table 't' is a int"),
        ([{"k": 1}, {"k": "x"}], "the rows of table 't' cannot be read"),
    ],
)
def test_errors_of_tables_speak_of_tables(given: Any, message: str) -> None:
    with pytest.raises(ms.InputError, match=message) as refused:
        made().table("t", given)
    assert refused.value.place == "table t" and "stream" not in str(refused.value)


def test_a_table_may_have_whole_numbers_beside_others() -> None:
    given = tables_of({"t": [{"x": 1}, {"x": 2.5}, {"x": float("nan")}, {"x": None}]})["t"]
    assert given["x"].to_pylist()[:2] == [1.0, 2.5]
