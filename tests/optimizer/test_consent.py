"""Who is asked before a plan changes, what they are told, and what becomes of their answer."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import MigrationBegun, ProposalClosed
from tests.optimizer.drifting import BAD_FIRST, GOOD_FIRST, engine, query, reviews, rows, run

BAD, UP_TO = "((A B) C)", range(30)


def begun(made: ms.Engine) -> list[MigrationBegun]:
    return [event for event in made.events if isinstance(event, MigrationBegun)]


def closed(made: ms.Engine) -> list[tuple[str, str]]:
    return [(event.state, event.plan) for event in made.events if isinstance(event, ProposalClosed)]


def test_by_default_nothing_moves_and_the_first_suggestion_says_how_to_say_yes() -> None:
    made = engine(plan=BAD)
    run(made, UP_TO)
    assert not begun(made) and made.manifest.queries["q"].plan == BAD
    suggested = next(event for event in reviews(made.events) if event.decision == "suggest")
    assert "midstream approve CKPT q" in suggested.answer and "engine.approve('q')" in suggested.answer
    assert "engine.optimize('q', mode='auto')" in suggested.answer
    made.approve("q")
    run(made, [30])
    assert made.manifest.queries["q"].plan == suggested.chosen


def test_in_auto_it_moves_by_itself() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="auto")
    run(made, UP_TO)
    assert made.manifest.queries["q"].plan in ("((A C) B)", "(A (B C))")
    assert [event.new for event in begun(made)] == [e.chosen for e in reviews(made.events) if e.decision == "switch"]


def test_off_looks_at_nothing() -> None:
    made = engine(plan=BAD)
    made.optimize(mode="off")
    run(made, UP_TO)
    assert not reviews(made.events)


def test_a_proposal_waits_and_is_rejected_until_it_gains_twice_as_much() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask", effort=1.0)  # Rows so few would pay for one review in 30 steps.
    run(made, UP_TO)
    assert not begun(made) and reviews(made.events)[-1].decision == "ask"
    made.reject("q")
    with pytest.raises(ms.QueryError, match="for query 'q' was rejected"):
        made.approve("q")
    run(made, range(30, 60))
    assert reviews(made.events)[-1].decision == "stay" and "was rejected" in reviews(made.events)[-1].reason
    assert not begun(made)


def test_two_consents_at_once_are_one() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask")
    run(made, UP_TO)
    made.approve("q")
    with pytest.raises(ms.QueryError, match="was approved in step 30"):
        made.approve("q")
    run(made, [30])
    assert len(begun(made)) == 1


def test_what_is_no_longer_proposed_is_not_approved() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask", effort=1.0)
    with pytest.raises(ms.QueryError, match="the optimizer proposes no other plan"):
        made.approve("q")
    run(made, UP_TO)
    proposed = reviews(made.events)[-1].chosen
    other = next(plan for plan in ("((A C) B)", "(A (B C))") if plan != proposed)
    with pytest.raises(ms.QueryError, match=r"the proposal for query .* is now"):
        made.approve("q", other)
    run(made, range(30, 60), GOOD_FIRST)
    assert closed(made)[0] == ("withdrawn", proposed)
    with pytest.raises(ms.QueryError, match="was withdrawn"):
        made.approve("q")


def test_a_query_that_moved_since_is_not_moved_by_an_old_consent() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask")
    run(made, UP_TO)
    made.migrate("q", "[A: B C | B: A C | C: A B]")
    with pytest.raises(ms.QueryError, match="has moved from"):
        made.approve("q")


def test_a_pinned_query_keeps_its_plan_until_it_is_unpinned() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="auto")
    made.pin("q")
    run(made, UP_TO)
    assert not reviews(made.events) and made.manifest.queries["q"].plan == BAD
    made.unpin("q")
    run(made, range(30, 60))
    assert made.manifest.queries["q"].plan != BAD


def test_a_pin_moves_first_and_must_fit() -> None:
    made = engine(plan=BAD)
    with pytest.raises(ms.PlanError):
        made.pin("q", "((A B) D)")
    made.pin("q", "((A C) B)")
    run(made, range(3))
    assert made.manifest.queries["q"].plan == "((A C) B)" and made.manifest.optimizations["q"].pinned


def test_only_what_is_allowed_is_done() -> None:
    made = engine(plan=BAD)
    made.optimize("q", allow=["(A (B C))", "parallel_track"], mode="auto")
    run(made, UP_TO)
    assert [(event.new, event.strategy) for event in begun(made)] == [("(A (B C))", "parallel_track")]
    assert {one["plan"] for event in reviews(made.events) for one in event.plans} == {BAD, "(A (B C))"}


def test_nothing_is_looked_at_in_quiet_hours() -> None:
    made = engine(plan=BAD)
    made.optimize("q", quiet=["00:00-00:20", "23:00-00:00"], mode="auto")
    run(made, UP_TO)
    assert not reviews(made.events)
    made = engine(plan=BAD)
    made.optimize("q", quiet=["00:20-00:00"], mode="auto")
    run(made, UP_TO)
    assert begun(made)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "clever"}, "unknown policy 'clever'"),
        ({"mode": "sometimes"}, "unknown mode 'sometimes'"),
        ({"objective": "joy"}, "unknown objective 'joy'"),
        ({"weights": {"joy": 1}}, "unknown weight 'joy'"),
        ({"weights": {"work": -1}}, "weight 'work' cannot be -1"),
        ({"weights": {"work": 0}}, "the weights cannot all be 0"),
        ({"allow": ["teleport"]}, "'teleport' is neither a plan nor a strategy"),
        ({"allow": [BAD]}, "leave no choice"),
        ({"allow": "jisc"}, "allow is 'jisc'"),
        ({"review": 0}, "review is 0"),
        ({"horizon": "soon"}, "horizon cannot be read"),
        ({"horizon": "-1 second"}, "horizon is negative"),
        ({"review": "x"}, "review cannot be read"),
        ({"quiet": ["at night"]}, "quiet hours cannot be read"),
        ({"quiet": ["25:00-26:00"]}, "different times within a day"),
        ({"quiet": ["10:75-12:00"]}, "quiet hours cannot be read"),
        ({"weights": {"work": 1e308}}, "weight 'work' cannot be 1e\\+308"),
        ({"review": None}, "review is None"),
        ({"allow": ["((B A) C)"]}, "already runs \\(\\(A B\\) C\\)"),
        ({"allow": ["pause_drain_resume"]}, "no allowed strategy can migrate query 'q'"),
        ({"allow": ["jisc_stairs"]}, "no allowed strategy can migrate query 'q'"),
        ({"allow": ["m_join", "((A C) B)"]}, "no allowed strategy can migrate query 'q'"),
        ({"wits": 3}, "unknown option of adaptive 'wits'"),
        ({"margin": "wide"}, "'margin' cannot be 'wide'"),
        ({"cost": "om"}, "unknown option of adaptive 'cost'"),
        ({"policy": "lambda_chart", "cost": "oms"}, "of lambda_chart 'cost' cannot be 'oms'.*use one of: own, om"),
        ({"policy": "sel_lambda_chart", "estimates": 3}, "'estimates' cannot be 3.*use one of: live, om"),
        ({"policy": "lambda_chart", "estimates": ["om"]}, "'estimates' cannot be .'om'"),
        ({"policy": "lambda_chart", "cost": "om", "w_r": -1}, "'w_r' cannot be -1.*from 0 to"),
        (
            {"policy": "lambda_chart", "cost": "om", "w_r": 0, "w_m": 0},
            "w_r and w_m are 0.*give one weight a number above 0",
        ),
        ({"policy": "lambda_chart", "decay": "fast"}, "'decay' cannot be 'fast'"),
    ],
)
def test_what_cannot_be_is_refused_and_the_query_runs_on(wrong: dict[str, object], message: str) -> None:
    made = engine(plan=BAD)
    made.push(rows(0, BAD_FIRST))
    before = made.manifest
    with pytest.raises(ms.MidstreamError, match=message) as raised:
        made.optimize("q", **wrong)  # type: ignore[arg-type]
    assert raised.value.remedy and "q" in raised.value.place
    assert made.manifest == before
    made.push(rows(1, BAD_FIRST))


def test_what_is_no_text_is_refused() -> None:
    made = engine(plan=BAD)
    with pytest.raises(ms.PlanError, match="3 is not a plan"):
        made.pin("q", 3)  # type: ignore[arg-type]
    for ask in ("approve", "reject", "optimize", "pin", "unpin"):
        with pytest.raises(ms.QueryError, match="there is no query"):
            getattr(made, ask)(["q"])


def test_a_strategy_for_probing_orders_may_be_all_that_is_allowed() -> None:
    made = engine(plan=BAD)
    made.optimize("q", allow=["m_join"], mode="auto")
    made.optimize("q", allow=["((B A) C)", "[A: B C | B: A C | C: A B]", "m_join"], mode="auto")


def test_a_query_without_alternatives_says_so() -> None:
    made = engine("AB")
    with pytest.raises(ms.QueryError, match="nothing to choose for query 'q'"):
        made.optimize("q", mode="auto")
    made.optimize("q", mode="off")
    made.optimize(mode="auto")
    run(made, UP_TO, {"A": 10, "B": 10})
    assert not reviews(made.events)
    assert made.plans("q").why_none


def test_without_a_mode_the_job_s_counts() -> None:
    made = engine(plan=BAD)
    made.optimize("q", review="1 second")
    run(made, [0])
    kept = made.manifest.optimizations["q"].settings
    assert kept is not None and (kept.mode, kept.review) == ("suggest", 1_000_000)
    made.optimize(mode="ask")
    made.optimize(policy="random")
    made.optimize("q")
    run(made, [1])
    kept = made.manifest.optimizations["q"].settings
    assert kept is not None and kept.mode == "ask" and made.manifest.optimizer.mode == "ask"


def test_without_a_strategy_the_one_that_suits_best_is_taken() -> None:
    found = []
    for strategy in ([], ["auto"]):
        made = engine(plan=BAD)
        run(made, range(10))
        made.migrate("q", "(A (B C))", *strategy)
        run(made, [10])
        found += begun(made)
    assert found[0] == found[1] and found[0].detail["considered"]


def test_settings_of_all_count_for_queries_that_have_none_of_their_own() -> None:
    made = engine(plan=BAD)
    made.add_query("own", query("ABC", window=9), plan=BAD)
    made.optimize("own", mode="off")
    made.optimize(policy="random", mode="auto")
    run(made, UP_TO)
    assert {event.policy for event in reviews(made.events)} <= {"random"}
    assert made.manifest.optimizer.policy == "random"


def test_queries_of_a_chain_move_together_as_the_most_cautious_allows() -> None:
    made = engine(plan=BAD)
    made.add_query("wide", query("ABC", window=12), plan=BAD)
    made.optimize("q", mode="auto")
    made.optimize("wide", mode="ask")
    run(made, UP_TO)
    assert not begun(made) and reviews(made.events)[-1].queries == ("q", "wide")
    made.approve("wide")
    run(made, [30])
    assert {entry.plan for entry in made.manifest.queries.values()} == {reviews(made.events)[-1].chosen}


def test_what_nobody_would_feel_is_not_suggested_and_plans_says_the_same() -> None:
    made = engine(plan=BAD)
    made.optimize("q", review="1 second", effort=1.0)
    run(made, UP_TO, rate=8)
    assert not any(event.chosen for event in reviews(made.events))
    shown = made.plans("q")
    assert shown.plans[0]["plan"] != BAD and shown.plans[0]["share"] < 0.95
    assert shown.would.startswith("stay: ") and "would feel" in shown.would
    last = reviews(made.events)[-1]
    assert shown.last == f"{last.decision}: {last.reason} (in step {last.step})"
    assert f"in step {last.step}: {last.decision}" in made.explain("q")


@pytest.mark.parametrize("rate", [12, 20])
def test_of_plans_that_are_alike_one_stays_proposed_and_is_reported_once(rate: int) -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask", review="1 second", effort=1.0)
    run(made, range(50), rate=rate)
    asked = [event for event in reviews(made.events) if event.decision == "ask"]
    assert asked and asked[-1].step < 20 and not closed(made), "the windows are full after 10 steps"
    assert len({event.chosen for event in asked}) == 1


def test_the_plans_are_shown_without_a_review() -> None:
    made = engine(plan=BAD)
    run(made, range(5))
    report = made.plans("q")
    costs = {one["plan"]: one["cost"] for one in report.plans}
    assert costs[BAD] > costs["((A C) B)"] and list(costs.values()) == sorted(costs.values())
    assert report.settings.mode == "suggest" and report.switch["strategy"]
    assert made.plans("q").to_json() == report.to_json()
    with pytest.raises(ms.QueryError, match="there is no query 'x'"):
        made.plans("x")


def test_status_and_explain_show_the_proposal_and_what_was_foreseen() -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask", effort=1.0)
    run(made, UP_TO)
    query = made.report().query("q")
    assert query.optimizer.waits and query.to_json()["optimizer"]["proposal"]["old"] == BAD
    assert "optimizer ask, adaptive, in step" in made.explain("q") and "foreseen" not in made.explain("q")
    assert "real" in made.explain("q", analyze=True)
    shown = made.explain("q", analyze=True, format="json")["optimizer"]
    assert 0.5 < shown["real"] / shown["foreseen"] < 2
