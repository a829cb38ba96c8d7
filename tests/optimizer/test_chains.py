"""Queries that move together: what one of them forbids is not done to any."""

from __future__ import annotations

from typing import Any

import pytest

import midstream as ms
from midstream.model.events import MigrationBegun, ProposalClosed
from midstream.model.optimization import Proposal
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
    made.optimize("q", allow=["((A C) B)", "(A (B C))"], mode="auto")
    made.optimize("wide", allow=["((C A) B)", "parallel_track"], mode="auto")
    run(made, UP_TO)
    assert [(event.new, event.strategy) for event in begun(made)] == [("((A C) B)", "parallel_track")]


def test_a_query_that_joins_the_chain_and_leads_it_does_not_void_the_others_allow_list() -> None:
    made = engine(plan=BAD)
    made.optimize("q", allow=["((A C) B)", "parallel_track"], mode="auto")
    run(made, range(1))
    made.add_query("a", query("ABC", window=12), plan=BAD)
    made.optimize("a", mode="auto")
    run(made, range(1, 30))
    assert [(event.new, event.strategy) for event in begun(made)] == [("((A C) B)", "parallel_track")]


def test_the_allow_list_of_each_is_read_in_its_own_aliases() -> None:
    made = engine(plan=BAD)
    text = "SELECT x.k FROM A x, B y, C z WHERE x.k = y.k AND y.k = z.k WINDOW 12 SECONDS"
    made.add_query("wide", text, plan="((x y) z)")
    made.optimize("q", mode="auto")
    made.optimize("wide", allow=["(x (y z))"], mode="auto")
    run(made, UP_TO)
    assert [event.new for event in begun(made)] == ["(A (B C))"]


def test_the_quiet_hours_of_each_count() -> None:
    made = chain()
    made.optimize("q", quiet=["23:00-00:00"], mode="auto")
    made.optimize("wide", quiet=["00:00-22:00"], mode="auto")
    run(made, UP_TO)
    assert not reviews(made.events)


@pytest.mark.parametrize(
    ("one", "other", "what"), [("((A C) B)", "(A (B C))", "plan"), ("jisc", "parallel_track", "strategy")]
)
def test_where_they_agree_on_nothing_the_plan_stays_and_that_is_said(one: str, other: str, what: str) -> None:
    made = chain()
    made.optimize("q", allow=[one], mode="auto")
    made.optimize("wide", allow=[other], mode="auto")
    run(made, UP_TO)
    assert not begun(made) and made.manifest.queries["wide"].plan == BAD
    said = f"no {what} is allowed by all of q, wide"
    assert said in reviews(made.events)[-1].reason and said in made.plans("q").would


def waiting(made: ms.Engine, query: str = "q") -> Proposal:
    proposal = made.manifest.optimizations[query].proposal
    assert proposal is not None and proposal.state == "waits"
    return proposal


def closed(made: ms.Engine) -> list[tuple[str, str]]:
    return [(event.state, event.reason) for event in made.events if isinstance(event, ProposalClosed)]


@pytest.mark.parametrize("anew", [{"mode": "off"}, {"mode": "ask", "allow": ["parallel_track"]}])
def test_settings_of_all_that_are_set_anew_withdraw_what_was_proposed(anew: dict[str, Any]) -> None:
    made = engine(plan=BAD)
    made.optimize(mode="ask")
    run(made, UP_TO)
    waiting(made)
    made.optimize(**anew)
    with pytest.raises(ms.QueryError, match="was withdrawn in step 30: the optimizer got new settings"):
        made.approve("q")


def test_a_proposal_is_of_the_queries_that_would_have_moved() -> None:
    made = engine(plan=BAD)
    made.optimize(mode="ask")
    run(made, UP_TO)
    waiting(made)
    made.add_query("a", query("ABC", window=12), plan=BAD)
    made.optimize("a", mode="ask", review="1 hour")
    run(made, [30])
    assert closed(made) == [("withdrawn", "it was proposed for q, but a, q would move by now")]
    made.drop_query("a")
    with pytest.raises(ms.QueryError, match="was withdrawn"):
        made.approve("q")


def test_what_was_proposed_when_another_query_joins_is_not_approved_in_the_same_step() -> None:
    made = engine(plan=BAD)
    made.optimize(mode="ask")
    run(made, UP_TO)
    made.add_query("wide", query("ABC", window=12), plan=BAD)
    with pytest.raises(ms.QueryError, match="was proposed for q, but q, wide would move by now"):
        made.approve("q")


@pytest.mark.parametrize("dropped", ["q", "wide"])
def test_a_query_that_ends_takes_the_proposal_with_it_and_that_is_said(dropped: str) -> None:
    made = chain()
    made.optimize(mode="ask")
    run(made, UP_TO)
    waiting(made)
    made.drop_query(dropped)
    run(made, [30])
    assert closed(made) == [("withdrawn", f"query {dropped} was dropped")]
