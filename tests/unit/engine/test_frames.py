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
from midstream.job.frames import ArrowArray, ArrowStream, tables_of

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
        ({"k": [1]}, "was given a dict"),
        ("k,ts", "was given a str"),
        ([1, 2], "row 0 of stream 'A' is a int"),
        ([{"k": 1}, ("k", 1)], "row 1 of stream 'A' is a tuple"),
        (pl.DataFrame(ROWS).lazy(), "was given a LazyFrame"),
        (pd.DataFrame, "was given a type"),
        (pd.DataFrame({"k": [object()]}), "do not read"),
        (None, "was given a NoneType"),
    ],
)
def test_bad_shapes_say_what_to_push(rows: Any, message: str) -> None:
    engine = made()
    with pytest.raises(ms.InputError, match=message) as error:
        engine.push({"A": rows})
    assert error.value.remedy and error.value.place == "push, stream A"
    assert engine.manifest.step == -1 and engine.push({"A": ROWS})["q"].num_rows == 2


def test_rows_are_pushed_by_stream() -> None:
    with pytest.raises(ms.InputError, match="pushed by stream"):
        made().push(ROWS)  # type: ignore[arg-type]


def test_the_package_shows_what_it_imports_when_asked() -> None:
    assert {"Job", "sinks", "results_stream", "Engine", "events"} <= set(dir(ms))
    assert set(ms.__all__) <= set(dir(ms))


def test_tables_pass_untouched_and_packages_are_known_by_their_interface() -> None:
    assert tables_of({"A": TABLE})["A"] is TABLE and tables_of(None) == {}
    assert isinstance(pl.DataFrame(), ArrowStream) and isinstance(pd.DataFrame(), ArrowStream)
    assert isinstance(Batched(), ArrowArray)
