"""The paper's own rules over courses: where they lose results, and that ours lose none."""

from __future__ import annotations

from typing import Any

import pytest

from midstream.lab.figure import Judgement
from midstream.lab.figures.jisc_04 import (
    CASE_3,
    COURSES,
    DOUBLED,
    DUE,
    ENGINE,
    FRESH,
    LOSING,
    LOST,
    OF_STREAM,
    PER_STATE,
    PLANS,
    PRESENT,
    PRINTED,
    RULES,
    Jisc04,
    RuleCourse,
)
from midstream.lab.tidy import table


def lost(course: RuleCourse, rule: str) -> list[list[int]]:
    return sorted(sorted(one) for one in course.due() - course.by(rule))


def test_a_key_that_is_present_need_not_be_complete() -> None:
    """The third row meets complete states only, and leaves its pair in BC: A finds it there and nothing older."""
    course = RuleCourse("ABC", (("A", "B"), "C"), [("B", 7), ("C", 7), ("B", 7), ("A", 7)], {2: ("A", ("B", "C"))})
    assert lost(course, PRESENT) == lost(course, FRESH) == lost(course, PRINTED) == [[0, 1, 3]]
    assert lost(course, PER_STATE) == lost(course, OF_STREAM) == lost(course, CASE_3) == []
    assert course.by_engine() == course.due()


def test_children_that_are_complete_do_not_make_their_parent_so() -> None:
    """§4.3, case 3: AB and CD are completed by each other's rows; ABCD is not by that."""
    rows = [("E", 7), *((name, 7) for name in "ABCD"), ("A", 7), ("C", 7), ("E", 7)]
    before = (((("E", "A"), "B"), "C"), "D")
    course = RuleCourse("ABCDE", before, rows, {5: ((("A", "B"), ("C", "D")), "E")})
    assert lost(course, CASE_3)
    assert not lost(course, PER_STATE)
    assert course.by_engine() == course.due()


@pytest.mark.parametrize("bushy", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_course_by_its_rules_without_a_transition_finds_everything(seed: int, bushy: bool) -> None:
    course = RuleCourse.drawn(seed, bushy=bushy, rows=30, moves=0)
    assert all(course.by(rule) == course.due() for rule in RULES)


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_the_engine_loses_nothing(seed: int) -> None:
    course = RuleCourse.drawn(seed, bushy=True, rows=36)
    assert course.by_engine() == course.due()


def counted(losing: dict[str, int], doubled: int = 0) -> Any:
    return table(
        {PLANS: plans, "case": rule, COURSES: 9, DUE: 100, LOST: 1.0 * n, LOSING: n, DOUBLED: doubled}
        for plans in ("left-deep", "bushy")
        for rule in (*RULES, ENGINE)
        for n in [losing.get(rule, 0)]
    )


def test_each_rule_is_judged_by_its_own_losses() -> None:
    assert all(verdict.holds for verdict in Jisc04().judge(counted({})))
    for at, rule in enumerate((PRINTED, PRESENT, FRESH, OF_STREAM, CASE_3)):
        verdicts = Jisc04().judge(counted({rule: 2}))
        assert [v.finding for v in verdicts].index(Judgement.FAILS) == at
        assert sum(not v.holds for v in verdicts) == 1
    assert not Jisc04().judge(counted({ENGINE: 1}))[-1].holds
    assert not Jisc04().judge(counted({PER_STATE: 1}))[-1].holds
    assert not Jisc04().judge(counted({}, doubled=1))[-2].holds
