"""JISC's experiments: streams without chance, plans, what a transition costs."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.lab.figures.jisc_latency import latency
from midstream.lab.generator import strides
from midstream.lab.jisc_settings import ROW, JoinChain, switch
from midstream.model.schema import StreamSchema
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Join, Plan
from midstream.sql.ddl import parse_ddl
from midstream.sql.parse import parse_query

CHAIN = JoinChain(joins=4, window=10, steps=5)


@pytest.mark.parametrize("size", [1, 2, 6, 25, 100])
def test_every_stretch_as_long_as_the_domain_has_each_key_once(size: int) -> None:
    keys = strides(np.full(3 * size, size), np.random.default_rng(5))
    for start in range(2 * size):
        assert sorted(keys[start : start + size]) == list(range(size))


def test_keys_keep_to_the_domain_of_their_time() -> None:
    keys = strides(np.array([4, 4, 4, 50, 50, 4]), np.random.default_rng(1))
    assert (keys[[0, 1, 2, 5]] < 4).all() and sorted(keys[[0, 1, 2, 5]]) == [0, 1, 2, 3]


def test_every_stream_brings_a_row_each_millisecond() -> None:
    arrivals = CHAIN.workload().arrivals(CHAIN.seconds)
    assert {rows.rows.num_rows for rows in arrivals.values()} == {CHAIN.window}
    assert arrivals["S3"].times.tolist() == [1000 * at for at in range(10)]
    assert arrivals["S3"].between(3 * ROW, 4 * ROW).num_rows == 1


@pytest.mark.parametrize(("plan", "incomplete"), [("old", 0), ("best", 1), ("worst", 3)])
def test_incomplete_states_of_the_transitions(plan: str, incomplete: int) -> None:
    columns = parse_ddl("k BIGINT, ts TIMESTAMP")
    query = parse_query(CHAIN.workload().sql, {n: StreamSchema(n, columns, "ts", 0, None) for n in CHAIN.names})
    old, new = (parse_plan(notation, query) for notation in (CHAIN.old, getattr(CHAIN, plan)))
    assert len(states(new) - states(old)) == incomplete


def states(plan: Plan) -> set[frozenset[str]]:
    if not isinstance(plan, Join):
        return set()
    return {frozenset(plan.aliases())} | states(plan.left) | states(plan.right)


def test_a_row_finds_one_partner_at_every_join() -> None:
    trace = CHAIN.play(CHAIN.old, 4.0)
    since = 2 * CHAIN.seconds
    # Once windows are full every key has one row of each stream and one combination of each intermediate state; what
    # died lately is not gone yet.
    living = CHAIN.window * (CHAIN.joins + 1 + CHAIN.joins - 1)
    assert living <= trace.column("state_rows")[-1] <= 1.4 * living
    assert 0.5 * trace.total("rows", since) <= trace.total("results", since) <= trace.total("rows", since)


def test_jisc_completes_each_key_of_each_incomplete_state_once() -> None:
    begin = 1.2 * CHAIN.seconds
    cost = {}
    for name, plan in (("best", CHAIN.best), ("worst", CHAIN.worst)):
        trace = CHAIN.play(CHAIN.old, 4.0, [switch(begin, plan, "jisc")])
        stage = trace.stage
        assert stage.ended is not None and stage.arrivals <= CHAIN.seconds + CHAIN.tick + 1e-9
        cost[name] = stage.comparisons
    assert 0 < cost["best"] <= CHAIN.window
    assert cost["best"] < cost["worst"] <= CHAIN.window * (CHAIN.joins - 1)


def test_both_strategies_give_the_same_results() -> None:
    begin = 1.2 * CHAIN.seconds
    plain = CHAIN.play(CHAIN.old, 4.0).total("results")
    for strategy in ("jisc", "parallel_track"):
        assert CHAIN.play(CHAIN.old, 4.0, [switch(begin, CHAIN.worst, strategy)]).total("results") == plain


def test_latency_of_jisc_does_not_grow_with_the_window() -> None:
    (small, results), (large, more) = (latency(JoinChain(4, window, steps=4), "jisc") for window in (40, 400))
    assert results and more
    assert large < 2 * small
    assert (
        latency(JoinChain(4, 400, steps=4), "moving_state")[0]
        > 5 * latency(JoinChain(4, 40, steps=4), "moving_state")[0]
    )
