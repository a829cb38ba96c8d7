"""JISC over STAIRs (JISC §4.6)."""

from __future__ import annotations

from typing import Any

import pytest

import midstream as ms
from midstream.model.events import MigrationEnded
from tests.unit.migration.rides import Ride

PLANS = ("stairs((((A B) C) D))", "stairs((A (B (C D))))", "stairs(((A C) (B D)))")


def test_it_promotes_on_demand_what_stairs_promotes_at_once() -> None:
    moved, work = [], []
    still = Ride(PLANS[0], keys=30, rows=9).go(20)
    for strategy in ("jisc_stairs", "stairs"):
        moves: dict[int, tuple[str, str, dict[str, Any]]] = {6: (PLANS[1], strategy, {}), 8: (PLANS[2], strategy, {})}
        ride = Ride(PLANS[0], keys=30, rows=9).go(20, moves)
        assert ride.found == still.found
        assert [e.plan for e in ride.events(MigrationEnded)] == list(PLANS[1:])
        operators = ride.engine.manifest.operators
        moved.append(sum(counters.moved for counters in operators.values()))
        work.append(sum(e.comparisons for e in ride.events(MigrationEnded)))
    assert 0 < moved[0] < moved[1]
    assert 0 < work[0] < work[1]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (PLANS[0], "(A (B (C D)))", "keeps no STAIRs; jisc goes from joins to joins"),
        ("(A (B (C D)))", PLANS[0], "keeps no STAIRs whose entries could be promoted; strategy stairs makes them"),
        ("eddy(A B C D)", PLANS[0], "keeps no STAIRs whose entries could be promoted"),
    ],
)
def test_it_goes_from_stairs_to_stairs_only(old: str, new: str, reason: str) -> None:
    ride = Ride(old).go(2)
    with pytest.raises(ms.StrategyError, match=reason):
        ride.engine.migrate("q", new, "jisc_stairs")
    assert Ride(old).go(4).found == ride.go(2).found
