"""The optimizer benchmark: schedules, gaps, verdicts, the page, and small runs in which all answer alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.optimizer import embedded
from benchmarks.optimizer.contestants import Contestant, decided_by, every_policy, kept, scheduled
from benchmarks.optimizer.course import LEAD, Course
from benchmarks.optimizer.fixed_plans import fixed_plans
from benchmarks.optimizer.load import LOADS, QUICK, Load
from benchmarks.optimizer.page import page
from benchmarks.optimizer.picture import draw, draw_story
from benchmarks.optimizer.record import Record, Report, output_gap, record_of
from benchmarks.optimizer.scenarios import SCENARIOS
from benchmarks.optimizer.schedule import best_schedule
from benchmarks.optimizer.trace import Trace
from benchmarks.optimizer.verdicts import best, verdicts, wrong

LOAD = replace(QUICK["embedded"], rate=40)


def cost(work: dict[str, Sequence[float]], plans: Sequence[str], window: int) -> float:
    """What a way through plans costs by the benchmark's reckoning."""
    found = sum(work[plan][step] for step, plan in enumerate(plans))
    moves = [step for step in range(1, len(plans)) if plans[step] != plans[step - 1]]
    return found + sum(sum(work[plans[step]][max(0, step - window) : step]) for step in moves)


@pytest.mark.parametrize("seed", range(20))
def test_no_way_through_the_plans_costs_less_than_the_best_schedule(seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(1, 20, (3, 7)).tolist()
    work: dict[str, Sequence[float]] = dict(zip("PQR", drawn, strict=True))
    first, changes = best_schedule(work, window=2)
    found = [first]
    for step in range(1, 7):
        found.append(dict(changes).get(step, found[-1]))
    least = min(cost(work, plans, 2) for plans in product("PQR", repeat=7))
    assert cost(work, found, 2) == least


def trace(seconds: Sequence[float], results: Sequence[int]) -> Trace:
    count = len(seconds)
    return Trace((1e6,) * count, tuple(seconds), tuple(results), 1.0, 0.0, (), (), "p", 7)


def test_a_gap_is_from_output_to_output_once_the_window_is_full() -> None:
    load = replace(LOADS["embedded"], window=2.0, tick=1.0)
    assert output_gap(trace([0.1] * 5, [1] * 5), load) == pytest.approx(1.0)
    assert output_gap(trace([0.1, 0.1, 0.1, 0.1, 0.1], [1, 1, 1, 0, 1]), load) == pytest.approx(2.0)
    assert output_gap(trace([0.1, 0.1, 0.1, 1.5, 0.1], [1] * 5), load) == pytest.approx(2.4)


def record(name: str, kind: str, work: float, scenario: str, **other: object) -> Record:
    given = {"work": (work / 2, work / 2), "busy": 1.0, "results": 5, "mark": 1} | other
    return Record(scenario, name, kind, "P", "P", **given)  # type: ignore[arg-type]


def report(scenario: str, adaptive: float, **other: object) -> Report:
    rows = (
        record("P", "fixed", 100.0, scenario),
        record("Q", "fixed", 120.0, scenario),
        record("best_schedule", "schedule", 80.0, scenario),
        record("adaptive", "policy", adaptive, scenario, **other),
    )
    return Report("embedded", LOADS["embedded"], rows)


@pytest.mark.parametrize(
    ("scenario", "work", "other", "met"),
    [
        ("selectivity_flip", 90.0, {}, [True, True, True, True]),
        ("selectivity_flip", 95.0, {}, [False, True, False, True]),
        ("selectivity_flip", 101.0, {}, [False, False, False, False]),
        ("selectivity_flip", 90.0, {"busy": 1.0, "reviewing": 0.1}, [True, True, False, True]),
        ("steady", 102.0, {}, [True, True, True]),
        ("steady", 104.0, {}, [False, False, True]),
        ("steady", 102.0, {"busy": 1.0, "reviewing": 0.1}, [True, False, True]),
        ("steady", 100.0, {"switches": ((3, "Q"),)}, [True, True, False]),
    ],
)
def test_what_is_missed_is_said(scenario: str, work: float, other: dict[str, object], met: list[bool]) -> None:
    found = report(scenario, work, **other)
    assert [verdict.met for verdict in verdicts(found)] == met
    assert ("MISSED" in page([found])) == (not all(met))


def test_the_least_work_is_that_of_a_schedule_or_of_a_plan_that_was_kept() -> None:
    rows = report("steady", 100.0).records
    assert best(rows) == 80.0 and best(rows[:2]) == 100.0


def test_an_answer_that_differs_is_reported() -> None:
    found = report("steady", 100.0, mark=2)
    assert list(wrong(found.records)) == ["steady, adaptive: another answer (5 results, P has 5)"]
    assert "## WRONG" in page([found])


def test_a_report_survives_the_disk(tmp_path: Path) -> None:
    found = report("steady", 100.0, switches=((3, "Q"),), reviews=(1, 2))
    found.save(tmp_path)
    assert Report.load_from(tmp_path, "embedded") == found
    assert Report.load_from(tmp_path, "spark") is None


def test_a_scenario_goes_beside_what_was_measured_at_the_same_load_only(tmp_path: Path) -> None:
    found = report("steady", 100.0)
    found.save(tmp_path)
    assert Report("embedded", found.load).with_rows_on_disk(tmp_path).records == found.records
    other = Report("embedded", replace(found.load, rate=1.0))
    assert other.with_rows_on_disk(tmp_path) is other
    assert Report("spark", found.load).with_rows_on_disk(tmp_path).records == ()


def test_a_scenario_measured_by_itself_takes_the_place_of_its_rows() -> None:
    found = report("steady", 100.0).with_rows("selectivity_flip", report("selectivity_flip", 90.0).records, SCENARIOS)
    again = found.with_rows("steady", report("steady", 55.0).records[-1:], SCENARIOS)
    assert again.scenarios == ["selectivity_flip", "steady"]
    assert [row.joined for row in again.of("steady")] == [55.0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_contestant_answers_alike(name: str) -> None:
    course = Course(replace(SCENARIOS[name], length=3.0, looks=(1.5,), scale=1.0), LOAD)
    fixed = fixed_plans(course)
    first, last = fixed.plans[:2]
    rows = [
        record_of(contestant, name, embedded.run(course, contestant), LOAD)
        for contestant in (kept(first), scheduled(first, ((3, last),)), decided_by("random", fixed.best))
    ]
    assert list(wrong(rows)) == []
    assert rows[0].results > 0
    assert rows[1].ends != rows[0].ends


def test_every_policy_competes() -> None:
    course = Course(replace(SCENARIOS["selectivity_flip"], length=4.0), LOAD)
    for policy in every_policy():
        contestant = decided_by(policy, "((A B) C)")
        engine = embedded.begun(course, contestant)
        engine.push({})
        assert engine.manifest.optimizer.policy == policy and engine.manifest.optimizer.mode == "auto"
    assert isinstance(contestant, Contestant) and LEAD in engine.manifest.queries


def test_reviews_are_measured() -> None:
    course = Course(replace(SCENARIOS["selectivity_flip"], length=24.0), replace(LOAD, rate=10 * LOAD.rate))
    found = embedded.run(course, decided_by("adaptive", "((A B) C)"))
    assert found.reviews and 0 < found.reviewing < found.busy


def test_pictures_are_drawn_of_what_was_measured(tmp_path: Path) -> None:
    found = report("three_way_flip", 90.0, switches=((1, "Q"),))
    draw(found, tmp_path / "all.png")
    draw_story(found, "three_way_flip", tmp_path / "story.png")
    draw_story(found, "steady", tmp_path / "none.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.png", "all.svg", "story.png", "story.svg"]


@pytest.mark.parametrize("load", [*LOADS.values(), *QUICK.values()])
def test_no_stream_is_taken_to_be_silent_while_a_step_of_others_was_found_first(load: Load) -> None:
    assert Course(SCENARIOS["steady"], load).idle_timeout > load.tick * 1e6
