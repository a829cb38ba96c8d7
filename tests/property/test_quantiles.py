"""Quantiles, BOOL_AND, BOOL_OR, COUNT_IF, lists, ARG_MIN and ARG_MAX of groups are those of DuckDB."""

from __future__ import annotations

import math
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midstream as ms
from tests.drawing import drawing
from tests.duck import database
from tests.oracle.values import agree
from tests.property.features.quantiles import CALLS, SHARES

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

SECOND = 1_000_000
COLUMNS = {"v": "v", "n": "k2", "s": "s"}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 30))
    times = sorted(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    column = lambda *values: draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))  # noqa: E731
    return pa.table(
        {
            "k": pa.array(column(1, 2, None), pa.int64()),
            "k2": pa.array(column(1, 2, 2**62, 2**62 + 1, -5, None), pa.int64()),
            "v": pa.array(column(0.5, 1.0, 2.5, -3.0, math.nan, None), pa.float64()),
            "s": pa.array(column("a", "b", "ab", None), pa.string()),
            "ts": pa.array([t * SECOND for t in times], pa.timestamp("us")),
        }
    )


@drawing(400, soak=5)
@given(data=st.data())
def test_groups_have_what_duckdb_has(data: st.DataObject) -> None:
    rows, share = data.draw(tables()), data.draw(st.sampled_from(SHARES))
    ours, theirs = data.draw(st.sampled_from(CALLS))
    engine = ms.Engine(lanes=data.draw(st.sampled_from([1, 2])))
    engine.create_stream("A", rows.schema, timestamp="ts")
    engine.add_query("q", f"SELECT k, {ours.format(p=share, **COLUMNS)} AS x, window_start AS w FROM A GROUP BY k, "
                          "TUMBLE(ts, INTERVAL '10' SECONDS)")  # fmt: skip
    cut = data.draw(st.integers(0, rows.num_rows))
    found: list[dict[str, Any]] = []
    end = pa.table(
        {n: pa.array([None if n != "ts" else 1000 * SECOND], rows.schema.field(n).type) for n in rows.column_names}
    )
    for part in (rows.slice(0, cut), rows.slice(cut), end):
        found += engine.push({"A": part})["q"].to_pylist()
    start = "epoch_us(time_bucket(INTERVAL 10 SECONDS, ts, TIMESTAMP '1970-01-01'))"
    sql = f"SELECT k, {theirs.format(p=share, **COLUMNS)}, {start} AS w FROM rows GROUP BY k, w"
    expected = database().execute(sql).fetchall()
    mine = [(r["k"], r["x"], int(r["w"].replace(tzinfo=UTC).timestamp() * SECOND)) for r in found]
    order = lambda row: (row[2], row[0] is None, row[0])  # noqa: E731
    assert len(mine) == len(expected)
    for one, other in zip(sorted(mine, key=order), sorted(expected, key=order), strict=True):
        assert one[0] == other[0] and one[2] == other[2]
        assert alike(one[1], other[1]), (one, other)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return agree(one, other)
