"""Parallel track: both plans, results held back, the two purge rules."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import MigrationEnded, MigrationProgressed
from tests.unit.migration.rides import Ride

MOVE = ("(A (B (C D)))", "parallel_track")


def test_new_results_are_held_back_and_released_in_one_burst() -> None:
    """Zhu §4.2: until the old plan is done only results with an old row go out."""
    still = Ride("(((A B) C) D)").go(24)
    ride = Ride("(((A B) C) D)").go(24, {9: (*MOVE, {"hold_new": True})})
    (ended,) = ride.events(MigrationEnded)
    assert ride.total == still.total
    held = [now - then for now, then in zip(still.found, ride.found, strict=True)]
    assert sum(map(len, held[: ended.step])) > 0
    assert all(not then - now for now, then in zip(still.found[: ended.step], ride.found[: ended.step], strict=True))
    assert ride.found[ended.step].total() > still.found[ended.step].total()
    assert ride.found[ended.step + 1 :] == still.found[ended.step + 1 :]


@pytest.mark.parametrize("second", ["moving_state", "hybmig", "parallel_track"])
def test_what_is_held_back_outlives_the_next_migration(second: str) -> None:
    still = Ride("(((A B) C) D)").go(30)
    moves = {9: (*MOVE, {"hold_new": True}), 12: ("((A C) (B D))", second, {})}
    ride = Ride("(((A B) C) D)").go(30, moves)
    assert ride.total == still.total
    assert ride.found[12].total() > still.found[12].total()


def test_what_is_held_back_outlives_a_rescale_and_a_restart(tmp_path: object) -> None:
    still = Ride("(((A B) C) D)").go(30)
    ride = Ride("(((A B) C) D)").go(12, {9: (*MOVE, {"hold_new": True})})
    ride.engine.save(f"{tmp_path}/saved")
    ride.engine = ms.Engine.load(f"{tmp_path}/saved")
    ride.engine.rescale(lanes=2)
    assert ride.go(18).total == still.total


def test_the_papers_purge_rule_lasts_twice_as_long() -> None:
    """Lemma 2.2: min against max makes a plan of several joins wait for 2W, one join for W (HybMig §3.5)."""
    steps = {}
    for purge in ("watermark", "zhu"):
        ride = Ride("(((A B) C) D)").go(30, {9: (*MOVE, {"purge": purge})})
        assert ride.found == Ride("(((A B) C) D)").go(30).found
        (ended,) = ride.events(MigrationEnded)
        steps[purge] = ended.step - 9
        assert ride.events(MigrationProgressed)
    assert steps == {"watermark": 8, "zhu": 16} or steps == {"watermark": 9, "zhu": 17}


def test_what_a_shared_subplan_makes_later_is_new() -> None:
    """C ⋈ D is one stream to both plans: a pair of an old and a new row is a new row of it, and the new plan has it."""
    still = Ride("((A B) (C D))").go(30)
    assert Ride("((A B) (C D))").go(30, {9: ("(((C D) B) A)", "parallel_track", {})}).total == still.total


def test_an_aggregate_cannot_wait() -> None:
    ride = Ride("(((A B) C) D)").go(1)
    ride.engine.add_query("n", "SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS EVERY 5 SECONDS")
    ride.go(1)
    with pytest.raises(ms.StrategyError, match="hold_new keeps rows of the answer back"):
        ride.engine.migrate("n", "(B A)", "parallel_track", hold_new=True)
    with pytest.raises(ms.StrategyError, match="purge is one of watermark, zhu"):
        ride.engine.migrate("q", "(A (B (C D)))", "parallel_track", purge="never")
