"""Queries of one or two streams: every order of their selections, columns and streams does equal work.

So OM's chart of a single stream (OM §4.4.1), which orders selections and projection, would have nothing to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from midstream.embedded import Engine
from midstream.model.counters import Counters
from midstream.model.errors import MidstreamError
from midstream.optimizer.charts.chart_policy import ChartPolicy
from midstream.optimizer.policies.lambda_chart import LambdaChart
from midstream.optimizer.policies.sel_lambda_chart import SelLambdaChart

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


@pytest.mark.parametrize("policy", [LambdaChart(), SelLambdaChart()])
@pytest.mark.parametrize("streams", ["A", "AB"])
def test_a_chart_of_such_a_query_is_refused_with_the_reason(streams: str, policy: ChartPolicy) -> None:
    with pytest.raises(MidstreamError, match="fewer than three streams, and so has one plan"):
        engine_of(streams).optimize("q", policy.name, "auto")
