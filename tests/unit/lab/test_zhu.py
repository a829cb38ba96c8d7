"""Zhu's experiments: Table 2 as run, against the cost models."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.lab.costs.zhu_costs import t_ms_left_deep
from midstream.lab.figures.zhu_cases import POWER, Course, joins, longest_zero
from midstream.lab.virtual_processor import PlanSwitch, Processor
from midstream.lab.zhu import HIGH, LOW, MIGRATED, NEW, OLD, ZhuSetting, predicted, set_1, stage, t_pt_by_lemma
from midstream.model.events import MigrationBegun


def test_table_2_as_streams() -> None:
    workload = LOW.workload()
    assert [(source.name, source.rate, dict(source.columns)) for source in workload.sources] == [
        ("A", 10, {"ab": 10}),
        ("B", 10, {"ab": 10, "bc": 50}),
        ("C", 10, {"bc": 50, "cd": 50}),
        ("D", 10, {"cd": 50}),
    ]
    assert workload.sql.endswith("WHERE NOT A.ab <> B.ab AND NOT B.bc <> C.bc AND NOT C.cd <> D.cd")
    assert workload.sql.count("RANGE 1000 MILLISECONDS") == 4


def test_both_plans_give_the_same_results() -> None:
    setting = ZhuSetting(1000, dict.fromkeys("ABCD", 50.0), {"AB": 0.1, "BC": 0.1, "CD": 0.1})
    old, new = (Processor(1e9, 0.5).play(setting.workload(), plan, 4.0).total("results") for plan in (OLD, NEW))
    assert old == new > 50


def test_moving_state_takes_as_long_as_the_model_says() -> None:
    setting = set_1(4000)
    lengths = [stage(setting, "moving_state", 1000, seed).length for seed in range(8)]
    # The engine keeps rows a little longer than W: until the slowest stream's watermark has passed.
    assert np.mean(lengths) == pytest.approx(1.15 * predicted(t_ms_left_deep, setting, 1000), rel=0.2)


def test_when_two_lines_have_joined() -> None:
    seconds = np.arange(8.0, 16.0)

    def course(*counts: int) -> Course:
        return Course(seconds, np.array(counts, float), seconds, 0.0, 0.0, 0.0)

    other = course(1, 1, 1, 1, 1, 1, 1, 1)
    assert joins(course(9, 9, 9, 1, 2, 1, 1, 1), other) == 13
    assert joins(course(1, 1, 1, 1, 1, 1, 1, 2), other) == float("inf")


def test_lemma_2_2_purges_within_twice_the_window() -> None:
    lengths = [t_pt_by_lemma(set_1(2000), seed, start=3.0) for seed in range(4)]
    assert all(3.6 < length < 4.5 for length in lengths)


def test_the_longest_run_of_zeros() -> None:
    assert longest_zero(np.array([0, 3, 0, 0, 1, 0])) == 2
    assert longest_zero(np.array([])) == 0


def cleaning(setting: ZhuSetting, speed: float, tick: float, seed: int) -> tuple[float, float]:
    """Return the seconds that the old plan takes for the tuples accumulated when a migration begins, and those of its
    states.
    """
    switch = PlanSwitch(MIGRATED, NEW, "moving_state")
    trace = Processor(speed, tick).play(setting.workload(seed), OLD, MIGRATED + 5 * tick, [switch])
    (begun,) = [event.step for event in trace.events if isinstance(event, MigrationBegun)]
    place = [step.step for step in trace.steps].index(begun)
    moved, before = trace.steps[place], trace.steps[:place][-50:]
    a_tuple = sum(step.work for step in before) / sum(step.rows for step in before)
    return moved.queue * a_tuple / speed, moved.end - moved.begin


def test_cleaning_accumulated_tuples_is_short_only_where_the_system_keeps_up() -> None:
    """§5.1 leaves it out of T_MS for that reason; in set 2 of §6.3, which cannot keep up, it is most of the silence.

    The engine cleans nothing: what waits is met by the new plan, whose states are whole.
    """
    cleaned, moved = np.sum([cleaning(LOW, POWER / 20, 0.01, seed) for seed in range(4)], axis=0)
    assert 0 < cleaned < 0.2 * moved
    cleaned, moved = cleaning(HIGH, POWER, 0.2, seed=4)
    assert cleaned > 10 * moved
