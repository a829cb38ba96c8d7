"""Queries of one or two streams: every order of their selections, columns and streams counts equal work.

Without a chart policy each batch has its own order of conditions; `test_selection_chart.py` has the charts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from midstream.embedded import Engine
from midstream.expr import evaluate
from midstream.expr.evaluate import Columns
from midstream.expr.expression import Expression
from midstream.expr.kernels.datum import Mask
from midstream.logical.query import query_of
from midstream.model.counters import Counters

SELECTIONS = ("A.x < 2", "A.y < 50", "A.name LIKE 'a%'")
"""A fiftieth, a half and a third of the rows pass; the last one takes longest."""


def rows(seed: int, second: int) -> pa.Table:
    random = np.random.default_rng([seed, second])
    return pa.table(
        {
            "k": random.integers(0, 20, 40),
            "x": random.integers(0, 100, 40),
            "y": random.integers(0, 100, 40),
            "name": random.choice(["ada", "bob", "cleo"], 40),
            "ts": pa.array(np.full(40, second * 1_000_000), pa.timestamp("us")),
        }
    )


def engine_of(streams: str, columns: Sequence[str] = ("A.k", "A.x"), where: Sequence[str] = SELECTIONS) -> Engine:
    engine = Engine()
    for name in streams:
        engine.create_stream(name, "k BIGINT, x BIGINT, y BIGINT, name TEXT, ts TIMESTAMP", timestamp="ts")
    joined = ["A.k = B.k"] if "B" in streams else []
    sources = ", ".join(f"{name} [RANGE 5 SECONDS]" for name in streams)
    sql = f"SELECT {', '.join(columns)} FROM {sources} WHERE {' AND '.join([*where, *joined])}"
    engine.add_query("q", sql, plan=f"({' '.join(streams)})" if joined else None)
    return engine


def counted(engine: Engine, streams: str) -> tuple[Counters, int]:
    """Push some steps; return the counters and the rows that are kept."""
    found = 0
    for second in range(4):
        answer = engine.push({name: rows(ord(name), second) for name in streams})["q"]
        found += answer.num_rows
    assert found
    return engine.manifest.totals, sum(
        one.live for state in engine.manifest.lane_states.values() for one in state.states.values()
    )


@pytest.mark.parametrize("streams", ["A", "AB"])
def test_every_order_of_selections_columns_and_streams_does_equal_work(streams: str) -> None:
    columns = ("A.k", "A.x", f"{streams[-1]}.y")
    by_order = {counted(engine_of(streams, where=order), streams) for order in permutations(SELECTIONS)}
    by_columns = {counted(engine_of(streams, order), streams) for order in permutations(columns)}
    by_streams = {counted(engine_of("".join(order)), streams) for order in permutations(streams)}
    assert len(by_order) == 1
    assert by_columns == by_order == by_streams


def selections(*where: str) -> list[Expression]:
    engine = engine_of("A", where=where)
    engine.push({"A": rows(1, 0)})
    return [condition for _, condition in query_of(engine.manifest.queries["q"]).selections]


def many(count: int) -> pa.RecordBatch:
    random = np.random.default_rng(count)
    names = pa.array(random.choice(["ada", "bob", "cleo", "dan"], count), mask=random.random(count) < 0.1)
    numbers = {name: pa.array(random.integers(0, 100, count), mask=random.random(count) < 0.1) for name in "xy"}
    return pa.record_batch({**numbers, "name": names})


RARE, COMMON, NUMBER = "A.name LIKE 'ad%'", "A.name LIKE '%a%'", "A.x < 20"


def test_a_large_batch_has_strings_compared_last_and_the_most_selective_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, evaluated = list[tuple[str, int]](), evaluate.holds

    def noted(condition: Expression, column: Columns, count: int) -> Mask:
        if count > evaluate.SAMPLED:
            seen.append((condition.text(), count))
        return evaluated(condition, column, count)

    monkeypatch.setattr(evaluate, "holds", noted)
    batch, (common, rare, number) = many(40_000), selections(COMMON, RARE, NUMBER)
    evaluate.all_hold([common, rare, number], batch)
    first, second, third = seen
    assert [text for text, _ in seen] == [number.text(), rare.text(), common.text()]
    assert first[1] == 40_000 > 4 * second[1] and second[1] > 3 * third[1]


@pytest.mark.parametrize("count", [0, 1, 300, evaluate.LARGE, 20_000])
def test_every_order_of_conditions_leaves_the_rows_that_all_of_them_leave(count: int) -> None:
    batch, found = many(count), set[bytes]()
    for order in permutations(selections(COMMON, RARE, NUMBER, "A.y > 30 OR A.name = 'bob'", "A.name IS NOT NULL")):
        found.add(evaluate.all_hold(order, batch).tobytes())
    each = [evaluate.holds(one, lambda c: batch.column(c.name), count) for one in order]
    assert found == {np.logical_and.reduce(each).tobytes()}
