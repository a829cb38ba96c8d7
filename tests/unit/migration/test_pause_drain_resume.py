"""Pause, drain, resume: for stateless boxes only."""

from __future__ import annotations

import pytest

from midstream.model.errors import StrategyError
from midstream.model.events import MigrationEnded
from tests.unit.building import engine, table


@pytest.mark.parametrize(
    ("sql", "plan"),
    [
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS", "(B A)"),
        ("SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 5 SECONDS", "A"),
        ("SELECT A.k FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 5 SECONDS]", "(A B)"),
    ],
)
def test_a_stateful_box_is_refused_with_the_reason(sql: str, plan: str) -> None:
    made = engine("AB")
    made.add_query("q", sql)
    made.push({"A": table([1], k=[1])})
    before = made.manifest
    with pytest.raises(StrategyError, match="the box is stateful: draining waits") as caught:
        made.migrate("q", plan, strategy="pause_drain_resume")
    assert "deadlock of Zhu §1" in str(caught.value)
    assert caught.value.place == "query q"
    assert caught.value.remedy.startswith("use a strategy that can: ") and "moving_state" in caught.value.remedy
    assert made.manifest is before


def test_a_stateless_query_goes_on_without_a_gap() -> None:
    made = engine("A")
    made.add_query("q", "SELECT A.k FROM A WHERE A.k > 1")
    assert made.push({"A": table([1, 2], k=[1, 2])})["q"].to_pylist() == [{"k": 2}]
    made.migrate("q", "[A: ]", strategy="pause_drain_resume")
    assert made.push({"A": table([3, 3], k=[3, 0])})["q"].to_pylist() == [{"k": 3}]
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    assert (ended.strategy, ended.plan, ended.comparisons) == ("pause_drain_resume", "[A: ]", 0)
