"""The pure parts of the plan-change benchmark: clock, answers, contestants, measures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from benchmarks.plan_change.answer import lost_and_doubled, marks, repeated
from benchmarks.plan_change.clock import Clock
from benchmarks.plan_change.contestants import AUTO, NEVER, RESTART, Contestant, contestants, every_strategy
from benchmarks.plan_change.load import LOADS, QUICK
from benchmarks.plan_change.measures import longest_gap, lowest_rate, measure
from benchmarks.plan_change.page import page
from benchmarks.plan_change.record import Record, Report, outputs_of, record_of, verdicts
from benchmarks.plan_change.scenario import Scenario
from benchmarks.plan_change.scenarios import SCENARIOS
from benchmarks.plan_change.trace import Recorder, Trace

FLIP, LOAD = SCENARIOS["selectivity_flip"], LOADS["spark"]
SINCE = FLIP.changes[0].at * LOAD.window


def trace(moments: list[float], *, lost: int = 0, doubled: int = 0) -> Trace:
    """A run with one result a moment, each delayed by half a second."""
    recorder = Recorder(asked=[SINCE], alone=SINCE + 2, extra=7)
    for number, at in enumerate(moments):
        ids = [number] * (0 if number < lost else 2 if number < lost + doubled else 1)
        times = pa.array([round((at - 0.5) * 1e6)] * len(ids), pa.timestamp("us"))
        recorder.keep(at, 0.1, pa.table({"a": ids, "b": ids, "_ts": times}), 5, 10, 100 + number, {})
    return recorder.trace()


def every_second() -> list[float]:
    return [float(second) for second in range(1, 29)]


def test_a_skipping_clock_leaves_out_only_the_waiting() -> None:
    real = iter([100.0, 100.0, 100.0, 103.0])
    clock = Clock(5.0, skip=True, source=lambda: next(real))
    assert clock.wait_until(8.0) == 8.0
    assert clock.now() == 11.0  # Three seconds of work are three seconds.
    assert clock.at(103.0) == 11.0


def test_a_clock_does_not_wait_for_what_has_passed() -> None:
    real = iter([0.0, 9.0, 9.0])
    assert Clock(0.0, skip=True, source=lambda: next(real)).wait_until(4.0) == 9.0


def test_marks_tell_rows_apart_and_not_their_makers() -> None:
    times = pa.array([1, 2], pa.timestamp("us"))
    one = pa.table({"a": [1, 2], "b": [2, 1], "_ts": times})
    other = pa.table({"_ts": times.cast(pa.timestamp("ns", "UTC")), "b": [2, 1], "a": [1, 2]})
    assert marks(one).tolist() == marks(other).tolist()
    assert len({*marks(one), *marks(one.set_column(0, "a", pa.array([3, 4])))}) == 4
    assert marks(one)[0] != marks(pa.table({"a": [2], "b": [1], "_ts": times[:1]}))[0]


def test_lost_and_doubled_are_counted_as_multisets() -> None:
    def of(*values: int) -> np.ndarray:
        return np.array(values, np.uint64)

    assert lost_and_doubled(of(1, 2, 2, 3), of(3, 2, 1, 2)) == (0, 0)
    assert lost_and_doubled(of(1, 2, 2, 3), of(2, 3, 3, 3)) == (2, 2)
    assert lost_and_doubled(of(1), of()) == (1, 0)


def test_a_result_is_a_repetition_only_if_all_of_it_was_taken_before() -> None:
    answer = pa.table({"a": [4, 5, 4], "b": [9, 9, 10]})
    assert repeated(answer, {"A": 5, "B": 10}).tolist() == [True, False, False]


def test_results_of_a_replay_do_not_count() -> None:
    recorder = Recorder()
    table = pa.table({"a": [0, 1], "_ts": pa.array([0, 0], pa.timestamp("us"))})
    recorder.keep(1.0, 0.1, table, 2, 3, 4, {"A": 1})
    (step,) = recorder.trace().steps
    assert step.results == 1


def test_every_strategy_competes() -> None:
    found = contestants(every_strategy(), LOAD)
    assert {c.strategy for c in found} == {*ms.strategies(), AUTO, NEVER, RESTART}
    assert len({c.name for c in found}) == len(found)
    references = [c for c in found if c.strategy == NEVER]
    assert found[: len(references)] == tuple(references)
    assert all(c.reference in references for c in found)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_plans_are_written_as_each_strategy_needs_them(scenario: Scenario) -> None:
    for contestant in contestants(["m_join", "cacq", "stairs", "jisc"], LOAD):
        start, changes = contestant.plans(scenario)
        match contestant.strategy:
            case "m_join":
                assert start.startswith("(") and all(plan.startswith("[") for _, plan in changes)
            case "cacq":
                assert [plan[:5] for _, plan in changes] == ["eddy("]
            case "stairs":
                assert all(plan.startswith("stairs((") for plan in [start, *(plan for _, plan in changes)])
            case "jisc":
                assert [plan for _, plan in changes] == [change.to.tree for change in scenario.changes]
            case strategy if strategy == NEVER:
                assert not changes


def test_the_gap_is_the_longest_that_touches_the_change() -> None:
    run = trace([1.0, 8.0, 9.0, 13.0, 14.0, 20.0, 50.0])
    assert longest_gap(run, 10.0, 15.0) == 6.0  # From 14, within the change, to 20; not 1 to 8, nor 20 to 50.
    assert longest_gap(run, 9.5, 12.0) == 4.0
    assert longest_gap(trace([1.0, 2.0]), 5.0, 12.0) == 10.0  # Nothing came any more.


def test_the_lowest_rate_is_that_of_the_poorest_piece() -> None:
    assert lowest_rate(trace([0.1, 0.2, 0.3, 1.1, 2.1, 2.2]), 0.0, 3.0, 1.0) == 1.0


def test_measures_of_a_silent_run() -> None:
    still = trace(every_second())
    silent = trace([at for at in every_second() if not SINCE < at < SINCE + 4])
    found = measure(silent, still, still.marks, FLIP, LOAD)
    assert (found.gap, found.gap_ratio) == (4.0, 4.0)
    assert found.lowest_rate < measure(still, still, still.marks, FLIP, LOAD).lowest_rate
    assert (found.delay_p99, found.pause, found.extra, found.alone) == (0.5, 0.1, 7, 2.0)
    assert found.peak_rows < still.steps[-1].state_rows


def test_measures_tell_what_was_lost_and_doubled() -> None:
    still = trace(every_second())
    found = measure(trace(every_second(), lost=2, doubled=3), still, still.marks, FLIP, LOAD)
    assert (found.lost, found.doubled) == (2, 3)


def report(ratio: float) -> Report:
    still = trace(every_second())
    late = trace([at for at in every_second() if not SINCE < at < SINCE + ratio])
    chosen = (Contestant(NEVER), Contestant(RESTART), Contestant("jisc"))
    records = [
        record_of(c, FLIP.name, ["a"], measures=measure(run, still, run.marks, FLIP, LOAD), outputs=((0.0, 0.5),))
        for c, run in zip(chosen, (still, late, late), strict=True)
    ]
    refused = record_of(Contestant("pause_drain_resume"), FLIP.name, ["a"], refused="it has state")
    return Report("spark", LOAD, (*records, refused), machine={"cores": 2})


@pytest.mark.parametrize(("ratio", "met"), [(1.0, True), (3.0, False)])
def test_the_verdict_is_on_the_best_strategy(ratio: float, met: bool) -> None:
    (verdict,) = verdicts(report(ratio))
    assert (verdict.best.contestant, verdict.met) == ("jisc", met)
    text = page([report(ratio)])
    assert ("| met |" in text, "**MISSED**" in text) == (met, not met)
    assert "| pause_drain_resume | refused |" in text and "it has state" in text
    assert "WRONG" not in text and "mean nothing" in page([replace(report(ratio), quick=True)])


def test_a_report_outlives_the_disk(tmp_path: Path) -> None:
    report(1.0).save(tmp_path)
    found = Report.load_from(tmp_path, "spark")
    assert found is not None and page([found]) == page([report(1.0)])
    assert Report.load_from(tmp_path, "embedded") is None


def test_what_is_wrong_is_said() -> None:
    still = trace(every_second())
    doubled = measure(trace(every_second(), doubled=1), still, still.marks, FLIP, LOAD)
    assert Record("s", "jisc", "jisc", (), doubled).wrong == "0 results lost, 1 doubled"
    assert Record("s", "jisc", "jisc", (), failed="it broke").wrong == "it broke"
    assert not Record("s", "jisc", "jisc", (), refused="no").wrong


def test_the_chooser_is_shown_with_what_it_chose() -> None:
    assert Record("s", AUTO, AUTO, (), used=("jisc", "jisc", "gms")).title == "auto (jisc, gms)"
    assert Record("s", "jisc", "jisc", (), used=("jisc",)).title == "jisc"


def test_outputs_are_reported_from_the_change_on() -> None:
    assert outputs_of(trace([1.0, 2.0, 3.0]), 1.5, 2.5, 1.0) == ((1.0, 0.5),)


def test_quick_and_full_runs_have_the_same_hosts() -> None:
    assert LOADS.keys() == QUICK.keys()
