"""A review that fails costs a query nothing but the review."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import ReviewFailed
from midstream.optimizer.policies.adaptive import Adaptive
from midstream.optimizer.policies.policy_contract import Decision, Review
from midstream.runtime import checks
from tests.optimizer.drifting import BAD_FIRST, engine, query, reviews, rows, run


def _failed(made: ms.Engine) -> list[str]:
    return [event.reason for event in made.events if isinstance(event, ReviewFailed)]


@pytest.mark.parametrize("sharing", ["pull_up", "push_down", "mem_opt", "off"])
def test_queries_with_filters_are_reviewed_in_every_mode_of_sharing(sharing: str) -> None:
    made = engine(sharing=sharing)
    made.add_query("filtered", query("ABC").replace(" WINDOW", " AND A.k % 2 = 0 WINDOW"))
    run(made, range(25))
    assert not _failed(made)
    assert bool(reviews(made.events)) == (sharing != "push_down"), "its plan stays while a stream is parted"


def test_a_fault_of_a_policy_keeps_no_step_from_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(self: Adaptive, review: Review) -> Decision:
        raise ZeroDivisionError(review.query)

    sound = engine()
    sound.optimize("q", mode="off")
    expected = [sound.push(rows(step, BAD_FIRST))["q"] for step in range(25)]
    monkeypatch.setattr(Adaptive, "decide", decide)
    made = engine()
    # Tests raise what a review raises; a user's process does not.
    with checks.turned_on(False):
        found = [made.push(rows(step, BAD_FIRST))["q"] for step in range(25)]
    assert found == expected
    assert _failed(made)[0] == "a fault of the review, please report it: ZeroDivisionError: q"


def test_beside_a_query_that_keeps_stairs_a_tree_is_made_of_joins_alone() -> None:
    made = ms.Engine()
    for name in "ABC":
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    windows = "A [RANGE {} SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]"
    text = f"SELECT A.k FROM {windows} WHERE A.k = B.k AND B.k = C.k"
    for name, seconds in (("q", 20), ("w", 5)):
        made.add_query(name, text.format(seconds), plan="((A B) C)")
    made.optimize("w", mode="auto", effort=1.0)
    made.migrate("q", plan="stairs(((C B) A))", strategy="stairs")
    for second in range(0, 60, 4):
        made.push({name: [{"k": second % 3, "ts": f"1970-01-01 00:00:{second:02d}"}] for name in "ABC"})
    assert made.manifest.queries["q"].plan.startswith("stairs(") and made.migration("q") is None
    assert not _failed(made) and reviews(made.events)
    assert "stairs" not in str(made.plans("w"))
