"""HybMig's experiments: plans, workload, methods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream.lab.hybmig_settings import (
    METHODS,
    RARE,
    STREAMS,
    HybMigTask,
    Machine,
    bushy,
    left_deep,
    right_deep,
    sharing,
)
from midstream.model.schema import StreamSchema
from midstream.plan.decompose import decompose
from midstream.plan.notation import parse_plan
from midstream.sql.ddl import parse_ddl
from midstream.sql.parse import parse_query

SMALL = Machine(minute=12.0, rows=1 / 6, domain=4, speed=float("inf"))


@pytest.mark.parametrize("streams", STREAMS)
def test_nothing_is_shared_but_where_sharing_is_the_point(streams: int) -> None:
    task = HybMigTask(SMALL, streams=streams)
    columns = parse_ddl("k BIGINT, ts TIMESTAMP")
    query = parse_query(task.workload().sql, {n: StreamSchema(n, columns, "ts", 0, None) for n in task.names})

    def units(notation: str) -> int:
        (found,) = decompose(parse_plan(left_deep(task.names), query), parse_plan(notation, query))
        return len(found.units)

    assert units(right_deep(task.names)) == streams
    # Of four streams the bushy plan keeps the old one's lowest join, whatever §5.1 says.
    assert units(bushy(task.names)) == (streams if streams > 4 else 3)
    assert units(sharing(task.names)) == 3


def test_the_rare_stream_is_the_first_before_the_start_and_the_last_after_it() -> None:
    task = HybMigTask(Machine(minute=60.0, rows=10.0, domain=20, speed=1.0))
    arrivals = task.workload().arrivals(task.end)
    for name, rare_before, rare_after in (("A", True, False), ("C", False, False), ("F", False, True)):
        before, after = arrivals[name].between(0, task.start), arrivals[name].between(task.start, task.end)
        for rows, rare in ((before, rare_before), (after, rare_after)):
            keys = rows.column("k").to_numpy()
            common = (keys < 20).mean()
            assert common == pytest.approx(1 / RARE if rare else 1.0, abs=0.01)
            assert keys.max() < 20 * (RARE if rare else 1)


def test_a_window_holds_its_share_of_the_paper_s_rows() -> None:
    task = HybMigTask(Machine(minute=12.0, rows=5.0, domain=4, speed=1.0), window=2.0, rate=1.6)
    arrivals = task.workload().arrivals(task.seconds)
    assert task.seconds == 24.0
    assert arrivals["B"].rows.num_rows == pytest.approx(2 * 60 * 1.6 * 5.0, rel=0.15)


@pytest.mark.parametrize("shape", ["right", "bushy", "sharing"])
def test_every_method_gives_the_results_that_are_due(shape: str) -> None:
    task = HybMigTask(SMALL, window=2.0, streams=4, shape=shape, ticks=6, span=1.6)
    due = task.undisturbed().total("results", task.start)
    found = {name: task.method(name) for name in METHODS}
    assert due > 50
    assert {name: trace.total("results", task.start) for name, trace in found.items()} == dict.fromkeys(METHODS, due)
    assert all(len(trace.stages) == 1 for trace in found.values())


def test_a_task_differs_by_what_is_changed() -> None:
    task = HybMigTask(SMALL)
    assert task.at(streams=7) == replace(task, streams=7) and task.at(streams=7).old == "((((((A B) C) D) E) F) G)"
    assert task.method("moving_state") is HybMigTask(SMALL).method("moving_state"), "equal runs are done once"
