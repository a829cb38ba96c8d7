"""A plan that is settled is not reviewed again while its streams stay as they are, and at once when they move."""

from __future__ import annotations

import midstream as ms
from midstream.model.codec import decode, encode
from midstream.model.optimization import Optimization
from midstream.step.reviewing.affordable import SAVED, SHORT
from midstream.step.reviewing.glance import has_moved
from tests.optimizer.drifting import BAD_FIRST, GOOD_FIRST, engine, reviews, rows, run

BEST, RATE, FILLED = "(A (B C))", 60, 24
LOOKS = ("settled", "settled_until", "seen", "counted", "paces", "saved")


def settled(effort: float = 0.03) -> ms.Engine:
    """An engine whose windows are full and whose plan is the best one."""
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", review="1 second", effort=effort)
    run(made, range(FILLED), BAD_FIRST, rate=RATE)
    return made


def kept(made: ms.Engine) -> Optimization:
    return made.manifest.optimizations["q"]


def reviewed(made: ms.Engine, since: int) -> list[int]:
    return [event.step for event in reviews(made.events) if event.step >= since]


def test_what_stays_as_it_is_is_not_reviewed() -> None:
    made = settled()
    assert kept(made).settled and kept(made).decision == "stay"
    run(made, range(FILLED, FILLED + 20), BAD_FIRST, rate=RATE)
    assert not reviewed(made, FILLED)
    assert kept(made).seen is not None and kept(made).seen > (kept(made).reviewed or 0)


def test_what_moves_is_reviewed_at_once_until_the_query_has_moved() -> None:
    made = settled()
    drifts = range(FILLED, FILLED + 12)
    run(made, drifts, GOOD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)[0] <= FILLED + 3
    assert "switch" in [event.decision for event in reviews(made.events)]
    assert made.manifest.queries["q"].plan != BEST


def test_though_nothing_moves_it_is_reviewed_once_that_is_paid_for_several_times() -> None:
    made = settled(effort=1.0)
    run(made, range(FILLED, FILLED + 20), BAD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)


def test_after_a_command_policies_look_again() -> None:
    made = settled()
    made.optimize("q", review="1 second", margin=0.2, mode="auto")
    run(made, range(FILLED, FILLED + 2), BAD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)


def test_bursts_that_lead_to_no_switch_are_not_reviewed_for_ever_where_a_review_takes_long() -> None:
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", review="1 second", effort=0.0001)
    for step in range(40):
        made.push(rows(step, dict.fromkeys("ABC", 3_000), rate=1_500 if step % 4 < 2 else 500))
    assert kept(made).price > SHORT
    assert 1 < len(reviews(made.events)) <= 1 + SAVED


def test_what_an_older_version_kept_has_no_looks() -> None:
    text = {name: value for name, value in encode(kept(settled())).items() if name not in LOOKS}
    assert decode(Optimization, text).seen is None and not decode(Optimization, text).settled


def test_little_counted_is_left_to_chance() -> None:
    assert not has_moved((10.0, 20.0, 5.0), (12.0, 26.0, 9.0), 1.0)
    assert has_moved((1e4, 2e4, 5e3), (1e4, 2e4, 2e4), 1.0)
