"""Late rows and dead letters with columns of types that Parquet files have not: they are shown as texts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms

SPAN = pa.month_day_nano_interval()
SHOWN = "MonthDayNano(months=1, days=2, nanoseconds=3)"


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "checkpoint"])
@pytest.mark.parametrize("nested", [False, True], ids=["flat", "list"])
def test_the_rows_are_kept_and_the_step_is_done(nested: bool, durable: bool, tmp_path: Path) -> None:
    kind, value = (pa.list_(SPAN), [(1, 2, 3)]) if nested else (SPAN, (1, 2, 3))
    shown = f"[{SHOWN}]" if nested else SHOWN
    columns = pa.schema([("k", pa.string()), ("span", kind), ("ts", pa.timestamp("us"))])

    def rows(*given: tuple[str, int]) -> pa.Table:
        times = [moment * 1_000_000 for _, moment in given]
        return pa.table([[k for k, _ in given], pa.array([value] * len(given), kind), times], schema=columns)

    with ms.Engine(checkpoint=tmp_path / "ckpt" if durable else None) as engine:
        engine.create_stream("A", columns, timestamp="ts")
        sink = {"path": str(tmp_path / "out"), "format": "json"} if durable else None
        engine.add_query("q", "SELECT CAST(A.k AS BIGINT) AS n, A.span FROM A", sink=sink)
        engine.push({"A": rows(("1", 5), ("x", 6))})
        assert engine.push({"A": rows(("2", 1), ("3", 7))})["q"]["n"].to_pylist() == [3]
        assert engine.late["A"].select(["k", "span"]).to_pylist() == [{"k": "2", "span": shown}]
        assert engine.dead_letters["q"].select(["A.k", "A.span"]).to_pylist() == [{"A.k": "x", "A.span": shown}]
