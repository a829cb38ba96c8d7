"""What becomes of settings, proposals and what was learned where a running query gets another text."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.commands.base import taken
from midstream.commands.change_query import ChangeQuery
from midstream.model.events import MigrationBegun, ProposalClosed, ReviewFailed
from tests.optimizer.drifting import engine, query, reviews, run

BAD = "((A B) C)"
OTHER = "SELECT x.k FROM A x, B y, C z WHERE x.k = y.k AND y.k = z.k WINDOW 12 SECONDS"


def test_plans_that_are_allowed_are_read_in_the_new_aliases() -> None:
    made = engine(plan=BAD)
    made.optimize("q", allow=["((A C) B)", "parallel_track"], mode="auto")
    run(made, range(3))
    made.change_query("q", OTHER)
    run(made, range(3, 30))
    assert not [event for event in made.events if isinstance(event, ReviewFailed)]
    begun = [(event.new, event.strategy) for event in made.events if isinstance(event, MigrationBegun)]
    assert begun == [("((x z) y)", "parallel_track")]


@pytest.mark.parametrize("text", [OTHER, query("ABC", window=12)], ids=["other aliases", "another window"])
def test_what_was_proposed_and_learned_is_of_the_old_text(text: str) -> None:
    made = engine(plan=BAD)
    made.optimize("q", mode="ask")
    run(made, range(30))
    assert reviews(made.events)[-1].decision == "ask" and made.manifest.optimizations["q"].memory
    assert not taken(made.manifest, ChangeQuery("q", text)).optimizations["q"].memory
    made.change_query("q", text)
    with pytest.raises(ms.QueryError, match="was withdrawn in step 30: query q was changed"):
        made.approve("q")
    run(made, [30])
    closed = [event.reason for event in made.events if isinstance(event, ProposalClosed)]
    assert closed == ["query q was changed"]
