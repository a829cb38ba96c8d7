"""Set differences by the paper's forwarding: where results are lost, and that ours lose none."""

from __future__ import annotations

from typing import Any

import pytest

from midstream.lab.figure import Judgement
from midstream.lab.figures.jisc_04_7 import (
    COMPLETED,
    COURSES,
    DOUBLED,
    DUE,
    ENDING,
    ENGINE,
    FORWARDED,
    LOSING,
    LOST,
    RULES,
    STAYING,
    WINDOWS,
    DifferenceCourse,
    Jisc047,
)
from midstream.lab.tidy import table
from midstream.model.events import MigrationEnded, StepDone
from tests.unit.building import engine
from tests.unit.building import table as rows_of


def test_a_row_that_comes_free_above_an_incomplete_state_is_lost_by_forwarding() -> None:
    """B keeps the A of second 0 out; after the move A-C lacks that A, and when B has gone nothing brings it back."""
    windows = {"A": 30, "B": 3, "C": 9, "D": 9}
    course = DifferenceCourse(windows, "BCD", [("B", 7), ("A", 7), *[("A", 1)] * 5], {2: "CBD"})
    assert dict(course.due() - course.by(FORWARDED)) == {(1, 4): 1}
    assert course.by(COMPLETED) == course.due() == course.by_engine()


@pytest.mark.parametrize("seed", range(4))
def test_a_course_without_a_transition_finds_everything(seed: int) -> None:
    course = DifferenceCourse.drawn(seed, ends=True, rows=60, moves=0)
    assert all(course.by(rule) == course.due() for rule in RULES)


@pytest.mark.parametrize("seed", range(3))
def test_neither_completion_nor_the_engine_loses_or_doubles_anything(seed: int) -> None:
    course = DifferenceCourse.drawn(seed, ends=True, rows=60)
    assert course.by(COMPLETED) == course.due() == course.by_engine()


def test_a_change_of_order_costs_the_engine_no_comparison_and_no_step() -> None:
    """Each inner stream has a state of its own with the outer one, which is complete in any order."""
    rows = DifferenceCourse.drawn(7, ends=True, rows=40).rows
    made = {plan: engine("ABCD") for plan in ("", "(((A C) D) B)")}
    for plan, one in made.items():
        inner = "".join(f" EXCEPT ON (k) {name} [RANGE 9 SECONDS]" for name in "BCD")
        one.add_query("q", f"SELECT j FROM A [RANGE 20 SECONDS]{inner}")
        for second, (stream, key) in enumerate(rows):
            if plan and second == 20:
                one.migrate("q", plan, "jisc")
            one.push({stream: rows_of([second], k=[key], j=[second])})
    still, moved = ([e for e in one.events if isinstance(e, StepDone)] for one in made.values())
    assert [e.comparisons for e in still] == [e.comparisons for e in moved] and sum(e.comparisons for e in still) > 0
    (ended,) = [e for e in made["(((A C) D) B)"].events if isinstance(e, MigrationEnded)]
    assert (ended.step, ended.comparisons, ended.detail["steps"]) == (20, 0, 1)


def counted(lost: dict[tuple[str, str], int], doubled: int = 0) -> Any:
    return table(
        {WINDOWS: windows, "case": rule, COURSES: 9, DUE: 100, LOST: 1.0 * n, LOSING: n, DOUBLED: doubled}
        for windows in (STAYING, ENDING)
        for rule in (*RULES, ENGINE)
        for n in [lost.get((windows, rule), 0)]
    )


def test_each_claim_is_judged_by_its_own_losses() -> None:
    assert all(verdict.holds for verdict in Jisc047().judge(counted({})))
    for at, where in (
        (0, (STAYING, FORWARDED)),
        (1, (ENDING, FORWARDED)),
        (3, (ENDING, COMPLETED)),
        (3, (STAYING, ENGINE)),
    ):
        verdicts = Jisc047().judge(counted({where: 2}))
        assert [v.finding for v in verdicts].index(Judgement.FAILS) == at
        assert sum(not v.holds for v in verdicts) == 1
    assert not Jisc047().judge(counted({}, doubled=1))[2].holds
