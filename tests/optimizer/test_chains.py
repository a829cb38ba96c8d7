"""Queries that move together: what one of them forbids is not done to any."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import MigrationBegun
from tests.optimizer.drifting import engine, query, reviews, run

BAD, UP_TO = "((A B) C)", range(30)


def begun(made: ms.Engine) -> list[MigrationBegun]:
    return [event for event in made.events if isinstance(event, MigrationBegun)]


def chain() -> ms.Engine:
    """Two queries that share one plan: `q`, which leads, and `wide`."""
    made = engine(plan=BAD)
    made.add_query("wide", query("ABC", window=12), plan=BAD)
    return made


def test_the_allow_list_of_each_counts() -> None:
    made = chain()
    made.optimize("q", allow=["((A C) B)", "(A (B C))"])
    made.optimize("wide", allow=["((C A) B)", "parallel_track"])
    run(made, UP_TO)
    assert [(event.new, event.strategy) for event in begun(made)] == [("((A C) B)", "parallel_track")]


def test_a_query_that_joins_the_chain_and_leads_it_does_not_void_the_others_allow_list() -> None:
    made = engine(plan=BAD)
    made.optimize("q", allow=["((A C) B)", "parallel_track"])
    run(made, range(1))
    made.add_query("a", query("ABC", window=12), plan=BAD)
    made.optimize("a")
    run(made, range(1, 30))
    assert [(event.new, event.strategy) for event in begun(made)] == [("((A C) B)", "parallel_track")]


def test_the_allow_list_of_each_is_read_in_its_own_aliases() -> None:
    made = engine(plan=BAD)
    text = "SELECT x.k FROM A x, B y, C z WHERE x.k = y.k AND y.k = z.k WINDOW 12 SECONDS"
    made.add_query("wide", text, plan="((x y) z)")
    made.optimize("q")
    made.optimize("wide", allow=["((x z) y)"])
    run(made, UP_TO)
    assert [event.new for event in begun(made)] == ["((A C) B)"]


def test_the_quiet_hours_of_each_count() -> None:
    made = chain()
    made.optimize("q", quiet=["23:00-00:00"])
    made.optimize("wide", quiet=["00:00-22:00"])
    run(made, UP_TO)
    assert not reviews(made.events)


@pytest.mark.parametrize(
    ("one", "other", "what"), [("((A C) B)", "(A (B C))", "plan"), ("jisc", "parallel_track", "strategy")]
)
def test_where_they_agree_on_nothing_the_plan_stays_and_that_is_said(one: str, other: str, what: str) -> None:
    made = chain()
    made.optimize("q", allow=[one])
    made.optimize("wide", allow=[other])
    run(made, UP_TO)
    assert not begun(made) and made.manifest.queries["wide"].plan == BAD
    said = f"no {what} is allowed by all of q, wide"
    assert said in reviews(made.events)[-1].reason and said in made.plans("q").would
