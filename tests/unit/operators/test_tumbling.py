"""What is kept of the groups of tumbling windows answers to the last bit what the kept rows answer."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.operators.tumbling import has_partial_sums
from midstream.sql.parse import parse_query
from midstream.units import program
from tests.drawing import seeds

SECOND = 1_000_000
COLUMNS = "k BIGINT, i INT, b BIGINT, x DOUBLE, d DECIMAL(38, 2), s VARCHAR, ok BOOLEAN, ts TIMESTAMP"
WINDOW = "TUMBLE(ts, INTERVAL 5 SECONDS)"
CALLS = (
    "COUNT(*)", "COUNT(s)", "COUNT_IF(b > 0)", "SUM(i)", "SUM(b)", "SUM(d)", "MIN(x)", "MAX(x)", "MIN(s)", "MAX(d)",
    "BOOL_AND(ok)", "BOOL_OR(ok)", "MAX(ts)", "SUM(b) FILTER (WHERE ok)", "MIN(i) FILTER (WHERE k > 1)",
)  # fmt: skip
ALL = ", ".join(f"{call} AS a{n}" for n, call in enumerate(CALLS))
QUERIES = {
    "by_key": f"SELECT k, {ALL}, window_start, _ts FROM A GROUP BY k, {WINDOW}",
    "by_more": f"SELECT s, ok, x, {ALL}, _ts FROM A WHERE i > -3 GROUP BY s, ok, x, {WINDOW}",
    "whole": f"SELECT {ALL}, _ts FROM A GROUP BY {WINDOW} HAVING COUNT(*) > 2",
    "of_groups": f"SELECT DISTINCT k, window_end FROM A GROUP BY {WINDOW}",
    "failing": f"SELECT k, SUM(10 // i) AS a, 10 // (COUNT(*) - 2) AS c, _ts FROM A GROUP BY k, {WINDOW}",
    "great": f"SELECT k, SUM(d) AS a, COUNT(*) AS n, _ts FROM A GROUP BY k, {WINDOW} HAVING COUNT(*) > 0",
}
GREAT, LEAST = Decimal("9" * 36 + ".00"), Decimal("-" + "9" * 36 + ".00")


class KeepingRows:
    """An engine that keeps the rows of every window, as one does whose aggregates cannot be put together of parts."""

    def __init__(self, made: ms.Engine) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)

        def called(*given: Any, **named: Any) -> Any:
            without = patch.object(program, "has_partial_sums", lambda query: False)
            with without:
                return found(*given, **named)

        return called if callable(found) else found


def engine(*, keeps_rows: bool = False, queries: Sequence[str] = tuple(QUERIES), lanes: int = 1) -> ms.Engine:
    """An engine with these queries; one that keeps rows instead of groups if asked."""
    made = ms.Engine(lanes=lanes)
    if keeps_rows:
        made = cast(ms.Engine, KeepingRows(made))
    made.create_stream("A", COLUMNS, timestamp="ts", lateness="3 seconds")
    for name in queries:
        made.add_query(name, QUERIES[name])
    return made


def drawn(rng: np.random.Generator, count: int, start: float) -> pa.Table:
    """Rows of some ten seconds, in no order, with NULLs, zeros of either sign, NaN and sums that are too great."""

    def of(values: Sequence[Any], type: pa.DataType) -> pa.Array:
        return pa.array(values, type).take(pa.array(rng.integers(0, len(values), count)))

    times = ((start + rng.random(count) * 10) * SECOND).astype(np.int64)
    return pa.table({
        "k": of([*range(9), None], pa.int64()),
        "i": of([0, 1, -5, 2**31 - 1, None], pa.int32()),
        "b": of([0, 2**63 - 1, -(2**63), 7, None], pa.int64()),
        "x": of([0.5, 0.0, float("nan"), float("inf"), -1.0, None], pa.float64()),
        "d": of([GREAT, GREAT, LEAST, Decimal("-0.01"), None], pa.decimal128(38, 2)),
        "s": of(["a", "b", "", None], pa.string()),
        "ok": of([True, False, None], pa.bool_()),
        "ts": pa.array(times).cast(pa.timestamp("us")),
    })  # fmt: skip


def same(one: pa.Table, other: pa.Table, where: str) -> None:
    assert one.schema == other.schema, where
    assert repr(one.to_pylist()) == repr(other.to_pylist()), where


@pytest.mark.parametrize("seed", seeds(12))
def test_answers_and_dead_letters_are_those_of_kept_rows(seed: int, tmp_path: Path) -> None:
    """To the row, in its order, in its step; over steps of all sizes, quiet ones, and a restart."""
    rng = np.random.default_rng(seed)
    new, old, answered, rejected = engine(), engine(keeps_rows=True), 0, 0
    for step in range(14):
        if step == 7:
            new.save(tmp_path / "saved")
            new = ms.Engine.load(tmp_path / "saved")
        count = int(rng.choice([0, 1, 3, 20, 60]))
        rows = {"A": drawn(rng, count, step * 2.0)} if count else {}
        found, wanted = new.push(rows), old.push(rows)
        for name in QUERIES:
            same(found[name], wanted[name], f"{name} step {step}")
            answered += len(found[name])
        assert new.dead_letters.keys() == old.dead_letters.keys()
        for name, dead in new.dead_letters.items():
            same(dead, old.dead_letters[name], f"dead letters of {name} step {step}")
            rejected += len(dead)
    assert answered > 20 and rejected > 20


@pytest.mark.parametrize("seed", range(4))
def test_lanes_are_divided_and_put_together_with_their_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)
    new, old = engine(queries=("by_key", "whole"), lanes=2), engine(queries=("by_key", "whole"), keeps_rows=True)
    for step in range(16):
        if step in (2, 7, 11):
            new.rescale({2: 3, 7: 1, 11: 2}[step])
        rows = {"A": drawn(rng, 40, step * 2.0)}
        found, wanted = new.push(rows), old.push(rows)
        for name in ("by_key", "whole"):
            assert sorted(map(repr, found[name].to_pylist())) == sorted(map(repr, wanted[name].to_pylist())), step


def test_a_sum_may_be_too_great_between_and_fit_at_the_end() -> None:
    """And one that does not fit at the end is a dead letter of its group, however its rows came."""
    made = engine(queries=("great",))
    for key, values in ((1, [GREAT] * 2 + [LEAST] * 2), (2, [GREAT] * 101), (3, [None])):
        for value in values:
            made.push({"A": rows(1, k=key, d=value)})
    found = made.push({"A": rows(20, k=9)})["great"]
    assert found.select(["k", "a", "n"]).to_pylist() == [
        {"k": 1, "a": Decimal("0.00"), "n": 4},
        {"k": 3, "a": None, "n": 1},
    ]
    assert made.dead_letters["great"].num_rows == 1


def rows(*seconds: float, **values: Any) -> pa.Table:
    """Rows at these seconds with these values, NULL for the others."""
    schema = drawn(np.random.default_rng(0), 1, 0).schema
    whole = {field.name: pa.array([values.get(field.name)] * len(seconds), field.type) for field in schema}
    whole["ts"] = pa.array([int(second * SECOND) for second in seconds], pa.int64()).cast(pa.timestamp("us"))
    return pa.table(whole)


def test_what_is_kept_is_a_row_for_each_group_and_is_written_when_it_changes() -> None:
    made = engine(queries=("by_key",))

    def kept() -> dict[str, Any]:
        (lane,) = made.manifest.lane_states.values()
        return {str(id): listing for id, listing in lane.states.items()}

    for _ in range(5):
        made.push({"A": pa.concat_tables([rows(*[1.0] * 50, k=1), rows(*[2.0] * 50, k=2), rows(6, k=1)])})
        assert [listing.live for listing in kept().values()] == [3]
    before = kept()
    made.push({"A": rows()})
    assert kept() == before
    made.push({"A": rows(10, k=5)})
    assert [listing.live for listing in kept().values()] == [2]
    made.push({"A": rows(40, k=5)})
    made.push({"A": rows(80, k=5)})
    assert [listing.live for listing in kept().values()] == [1]


def test_a_query_that_begins_later_answers_of_the_rows_from_then_on() -> None:
    """As one that keeps rows does: exact from the time on that its event says."""
    made, old = engine(queries=("by_key",)), engine(queries=("by_key",), keeps_rows=True)
    for one in (made, old):
        one.push({"A": rows(1, 6, k=1)})
        one.add_query("later", QUERIES["by_key"])
    found, wanted = [one.push({"A": rows(7, 12, 30, k=1)})["later"] for one in (made, old)]
    same(found, wanted, "later")
    assert found["a0"].to_pylist() == [1, 1]
    assert made.manifest.queries["later"].exact_from == old.manifest.queries["later"].exact_from


def test_groups_are_kept_where_they_can_be_put_together_of_parts() -> None:
    kept = []
    for keeps_rows in (True, False):
        made = engine(keeps_rows=keeps_rows, queries=("whole",))
        for _ in range(3):
            made.push({"A": rows(1, 2, k=1)})
        kept.append(made.metrics()["state_rows"])
    assert kept == [6, 1]


@pytest.mark.parametrize(
    ("calls", "window", "partial"),
    [
        *((call, WINDOW, True) for call in CALLS),
        ("COUNT(*)", "HOP(ts, INTERVAL 5 SECONDS, INTERVAL 5 SECONDS)", True),
        ("COUNT(*)", "HOP(ts, INTERVAL 5 SECONDS, INTERVAL 10 SECONDS)", False),
        ("COUNT(*)", "HOP(ts, INTERVAL 5 SECONDS, INTERVAL 2 SECONDS)", False),
        ("COUNT(*)", "SESSION(ts, INTERVAL 5 SECONDS)", False),
        *(
            (call, WINDOW, False)
            for call in (
                "SUM(x)", "AVG(i)", "COUNT(DISTINCT i)", "MEDIAN(i)", "STDDEV(i)", "ARRAY_AGG(i)", "MAX_BY(s, i)",
                "COUNT(*) AS n, AVG(x)",
            )
        ),
    ],
)  # fmt: skip
def test_which_queries_are_put_together_of_parts(calls: str, window: str, partial: bool) -> None:
    streams = engine(queries=()).manifest.streams
    assert has_partial_sums(parse_query(f"SELECT {calls} AS a FROM A GROUP BY {window}", streams)) == partial
