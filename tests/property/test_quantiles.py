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

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

SECOND = 1_000_000
FILTER = "FILTER (WHERE s IS NOT NULL AND v IS NOT NULL)"
CALLS = (
    ("QUANTILE_CONT(v, {p})",) * 2,
    ("QUANTILE_DISC(v, {p})",) * 2,
    ("QUANTILE(k2, {p})",) * 2,
    ("PERCENTILE_CONT({p}) WITHIN GROUP (ORDER BY v)",) * 2,
    ("PERCENTILE_DISC({p}) WITHIN GROUP (ORDER BY k2)",) * 2,
    ("QUANTILE_DISC(s, {p})",) * 2,
    ("BOOL_AND(v > 1)",) * 2,
    ("BOOL_OR(v > 2)",) * 2,
    ("COUNT_IF(v > 1)", "COUNT(*) FILTER (WHERE v > 1)"),
    ("QUANTILE_CONT(k2, {p}) FILTER (WHERE s = 'a')",) * 2,
    ("ARRAY_AGG(v)", "list(v ORDER BY v)"),
    ("LIST(s ORDER BY k2 DESC)", "list(s ORDER BY k2 DESC, s)"),
    ("ARRAY_AGG(DISTINCT k2 ORDER BY k2 DESC)",) * 2,
    ("ARRAY_AGG(s ORDER BY v) FILTER (WHERE v > 1)", "list(s ORDER BY v, s) FILTER (WHERE v > 1)"),
    ("COLLECT_LIST(v)", "coalesce(list(v ORDER BY v) FILTER (WHERE v IS NOT NULL), [])"),
    ("COLLECT_SET(s)", "coalesce(list(DISTINCT s ORDER BY s) FILTER (WHERE s IS NOT NULL), [])"),
    ("STRING_AGG(s, '-')", "string_agg(s, '-' ORDER BY s)"),
    ("LISTAGG(s, '') WITHIN GROUP (ORDER BY k2)", "string_agg(s, '' ORDER BY k2, s)"),
    ("ARG_MIN(s, v)", f"(list(s ORDER BY v, s) {FILTER})[1]"),
    ("MAX_BY(s, v)", f"(list(s ORDER BY v DESC, s) {FILTER})[1]"),
)


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
    rows, share = data.draw(tables()), data.draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
    ours, theirs = data.draw(st.sampled_from(CALLS))
    engine = ms.Engine(lanes=data.draw(st.sampled_from([1, 2])))
    engine.create_stream("A", rows.schema, timestamp="ts")
    engine.add_query("q", f"SELECT k, {ours.format(p=share)} AS x, window_start AS w FROM A GROUP BY k, "
                          "TUMBLE(ts, INTERVAL '10' SECONDS)")  # fmt: skip
    cut = data.draw(st.integers(0, rows.num_rows))
    found: list[dict[str, Any]] = []
    end = pa.table(
        {n: pa.array([None if n != "ts" else 1000 * SECOND], rows.schema.field(n).type) for n in rows.column_names}
    )
    for part in (rows.slice(0, cut), rows.slice(cut), end):
        found += engine.push({"A": part})["q"].to_pylist()
    start = "epoch_us(time_bucket(INTERVAL 10 SECONDS, ts, TIMESTAMP '1970-01-01'))"
    sql = f"SELECT k, {theirs.format(p=share)}, {start} AS w FROM rows GROUP BY k, w"
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
