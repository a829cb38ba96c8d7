"""The virtual processor: work takes time, arrivals wait, results are the engine's own."""

from __future__ import annotations

import pytest

from midstream.embedded.stream_generator import GeneratedStream, Schedule
from midstream.lab.generator import Workload, equal, query
from midstream.lab.trace import Trace
from midstream.lab.virtual_processor import QUERY, PlanSwitch, Prices, Processor
from midstream.model.events import MigrationEnded

OLD, NEW = "((A B) C)", "(A (B C))"
PREDICATES = [equal("A.k", "B.k", nested=True), equal("B.m", "C.m", nested=True)]
WORK = Workload(
    (
        GeneratedStream("A", 20, {"k": 5}),
        GeneratedStream("B", 20, {"k": 5, "m": 5}),
        GeneratedStream("C", 20, {"m": 5}),
    ),
    query("ABC", PREDICATES, "RANGE 1 SECOND"),
)


PLAIN = Prices()


def play(speed: float, switches: tuple[PlanSwitch, ...] = (), prices: Prices = PLAIN, until: float = 4.0) -> Trace:
    return Processor(speed, 0.1, prices).play(WORK, OLD, until, switches)


def test_a_step_takes_as_long_as_its_work() -> None:
    trace = play(10_000)
    for step in trace.steps:
        assert step.work == step.comparisons
        assert step.end == pytest.approx(step.begin + step.comparisons / 10_000)
    assert trace.total("comparisons") > 1_000


def test_work_is_priced() -> None:
    plain, priced = play(1e9), play(1e9, prices=Prices(insert=3, row=2))
    expected = plain.total("work") + 3 * plain.total("inserted") + 2 * plain.total("operator_rows")
    assert priced.total("work") == expected > plain.total("work")


def test_a_fast_processor_begins_a_step_every_tick_and_keeps_no_queue() -> None:
    trace = play(1e9)
    assert trace.column("begin") == pytest.approx([0.1 * (i + 1) for i in range(40)])
    assert trace.peak("queue") == 0
    assert trace.peak("delay_greatest") <= 0.1 + 1e-3


def test_a_slow_processor_lags_and_the_arrivals_wait() -> None:
    fast, slow = play(1e9), play(1_000)
    assert slow.steps[-1].end > 6
    assert slow.peak("queue") > 50
    assert slow.peak("delay_greatest") > 2
    # Behind, steps follow without pause.
    assert slow.steps[-1].begin == slow.steps[-2].end
    # The same arrivals in the same slices: the same work, only later.
    assert slow.column("comparisons").tolist() == fast.column("comparisons").tolist()


def test_the_speed_may_change() -> None:
    slow, both = play(1_000), Processor(Schedule(((0, 1e9), (2, 1_000))), 0.1).play(WORK, OLD, 4.0)
    assert both.steps[10].end == pytest.approx(both.steps[10].begin, abs=1e-3)
    last = both.steps[-1]
    assert last.end - last.begin == pytest.approx(slow.steps[-1].end - slow.steps[-1].begin)
    assert both.steps[-1].end < slow.steps[-1].end


def test_results_do_not_depend_on_speed_or_plan_or_migration() -> None:
    expected = play(1e9).total("results")
    assert expected > 100
    assert play(1_000).total("results") == expected
    assert play(1e9, (PlanSwitch(2.0, NEW),)).total("results") == expected
    assert play(1_000, (PlanSwitch(1.0, NEW), PlanSwitch(2.0, OLD))).total("results") == expected


def test_a_switch_has_a_step_of_its_own() -> None:
    trace = play(1_000_000, (PlanSwitch(2.0, NEW, "moving_state"),))
    stage = trace.stage
    (step,) = [step for step in trace.steps if step.begin == stage.began]
    assert stage.strategy == "moving_state" and stage.plan == NEW
    assert stage.began == pytest.approx(2.0) and step.rows == 0
    assert stage.comparisons == step.comparisons > 0
    assert stage.length == pytest.approx(step.comparisons / 1_000_000)
    assert len(trace.steps) == 41


def test_a_drained_switch_waits_for_the_rows_that_have_arrived() -> None:
    at_once, drained = (play(1_000, (PlanSwitch(2.0, NEW, drained=wait),)) for wait in (False, True))
    before = [max(s.upto for s in run.steps if s.end <= run.stage.began) for run in (at_once, drained)]
    assert before[0] < 2.0 and before[1] == pytest.approx(2.0)
    assert drained.stage.began > at_once.stage.began
    assert drained.total("results") == at_once.total("results")


def test_a_run_may_settle_with_its_migrations() -> None:
    switches = (PlanSwitch(1.0, NEW, "parallel_track"), PlanSwitch(2.5, OLD, "parallel_track"))
    whole = Processor(1e9, 0.1).play(WORK, OLD, 6.0, switches)
    settled = Processor(1e9, 0.1).play(WORK, OLD, 6.0, switches, settle=True)
    assert settled.stages == whole.stages
    assert settled.steps == whole.steps[: len(settled.steps)]
    assert settled.steps[-1].end == settled.stages[1].ended < whole.steps[-1].end


def test_events_of_every_step_are_kept_in_order() -> None:
    trace = play(1e9, (PlanSwitch(1.0, NEW), PlanSwitch(2.0, OLD), PlanSwitch(3.0, NEW)))
    steps = [event.step for event in trace.events]
    assert steps == sorted(steps)
    assert [e.plan for e in trace.events if isinstance(e, MigrationEnded) and e.query == QUERY] == [NEW, OLD, NEW]
    assert [round(stage.began) for stage in trace.stages] == [1, 2, 3]


def test_intermediate_rows_are_the_combinations() -> None:
    trace = play(1e9)
    last = trace.steps[-1]
    # State: base rows of three streams, purged as the watermark goes, and the pairs AB.
    base, older = (sum(r.before(4.0) - r.before(since) for r in WORK.arrivals(4.0).values()) for since in (3.0, 2.5))
    assert base <= last.state_rows - last.intermediate_rows <= older
    assert last.intermediate_rows == pytest.approx(20 * 20 / 5, rel=0.6)


def test_the_last_tick_may_be_short() -> None:
    trace = play(1e9, until=0.25)
    assert trace.total("rows") == sum(rows.rows.num_rows for rows in WORK.arrivals(0.25).values())
    assert len(trace.steps) == 3
