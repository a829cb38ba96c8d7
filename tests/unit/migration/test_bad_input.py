"""Wrong migrations: a clear error that names place and remedy, and the query runs on as if nobody had asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.migration import strategy_contract
from midstream.model.errors import CheckpointError, MidstreamError, PlanError, QueryError, StrategyError
from midstream.model.events import MigrationBegun, MigrationEnded
from tests.unit.building import both, engine, table

SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 4 SECONDS"
OTHER = "SELECT A.j AS a, D.j AS d FROM A, D WHERE A.k = D.k WINDOW 4 SECONDS"
TREE, OTHER_TREE = "((A B) C)", "(A (B C))"


def push(made: Any, second: int) -> dict[str, Any]:
    """Two rows in each stream; what the queries say to them."""
    rows = table([second, second + 0.5], k=[second % 2, 1], j=[2 * second, 2 * second + 1])
    return {name: found.to_pylist() for name, found in made.push(both("ABCD", rows)).items()}


def running(under_way: bool, steps: int = 3) -> Any:
    """Two queries that have seen some rows; `under_way`: the first one is on its way to another plan."""
    made = engine("ABCD")
    made.add_query("q", SQL, plan=TREE)
    made.add_query("p", OTHER)
    for step in range(steps):
        push(made, step)
    if under_way:
        made.migrate("q", OTHER_TREE, "hybmig")
        push(made, steps)
        assert made.migration("q") is not None
    return made


WRONG: dict[str, tuple[type[MidstreamError], tuple[str, str, dict[str, Any]], str, str]] = {
    "a plan of another query": (PlanError, ("(A D)", "hybmig", {}), "unknown source 'D'", "A, B, C"),
    "a plan that lacks a source": (PlanError, ("(A B)", "hybmig", {}), "the plan lacks C", "name every source"),
    "an unknown strategy": (StrategyError, (TREE, "teleport", {}), "unknown strategy 'teleport'", "hybmig"),
    "an unknown option": (StrategyError, (TREE, "gpt", {"speed": 9}), "gpt has no option 'speed'", "decompose"),
    "another strategy's option": (
        StrategyError, ("(C (A B))", "moving_state", {"background": 9}), "no option 'background'", "decompose",
    ),
    "a negative budget": (StrategyError, ("((C B) A)", "ghm", {"budget": -1}), "not -1", "correct"),
    "a budget that is a text": (StrategyError, ("((C B) A)", "hybmig", {"background": "much"}), "'much'", "correct"),
    "a budget of half a comparison": (StrategyError, ("((C B) A)", "jisc", {"background": 0.5}), "not 0.5", "correct"),
    "a budget that is a truth value": (StrategyError, ("((C B) A)", "jisc", {"background": True}), "True", "correct"),
    "no truth value": (StrategyError, ("((C B) A)", "gpt", {"decompose": "no"}), "not 'no'", "correct"),
    "a purge nobody knows": (StrategyError, ("((C B) A)", "parallel_track", {"purge": "never"}), "'never'", "correct"),
    "a stateful box drained": (StrategyError, ("((C B) A)", "pause_drain_resume", {}), "stateful", "moving_state"),
    "an eddy by m_join": (StrategyError, ("eddy(A B C)", "m_join", {}), "no probing orders", "cacq"),
    "a tree by cacq": (StrategyError, ("((C B) A)", "cacq", {}), "is not an eddy", "hybmig"),
    "a tree by stairs": (StrategyError, ("((C B) A)", "stairs", {}), "STAIR", "hybmig"),
    "a tree by jisc_stairs": (StrategyError, ("((C B) A)", "jisc_stairs", {}), "stairs", "jisc"),
}  # fmt: skip


@pytest.mark.parametrize("under_way", [False, True], ids=["at rest", "amid a migration"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_and_the_query_runs_on(wrong: str, under_way: bool) -> None:
    kind, (plan, strategy, options), reason, remedy = WRONG[wrong]
    made, quiet = running(under_way), running(under_way)
    before = made.manifest
    with pytest.raises(kind) as caught:
        made.migrate("q", plan, strategy, **options)
    assert type(caught.value) is kind
    assert reason in str(caught.value)
    assert remedy in caught.value.remedy
    assert caught.value.place
    assert made.manifest is before
    assert [push(made, n) for n in range(4, 12)] == [push(quiet, n) for n in range(4, 12)]
    assert made.events == quiet.events
    assert made.manifest == quiet.manifest


@pytest.mark.parametrize("strategy", sorted(set(ms.strategies()) - {"pause_drain_resume", "m_join", "cacq"}))
def test_to_the_plan_it_runs_by_or_is_on_its_way_to(strategy: str) -> None:
    form = "stairs({})" if "stairs" in strategy else "{}"
    made = engine("ABCD")
    made.add_query("q", SQL, plan=form.format(TREE))
    for step in range(3):
        push(made, step)
    for plan in (form.format(TREE), form.format(OTHER_TREE)):
        with pytest.raises(StrategyError, match="or is changing to it") as caught:
            made.migrate("q", plan, strategy)
        assert (caught.value.place, caught.value.remedy) == ("query q", "name another plan")
        if plan == form.format(TREE):
            made.migrate("q", form.format(OTHER_TREE), strategy)
    push(made, 3)
    assert made.manifest.queries["q"].plan == form.format(OTHER_TREE)
    assert sum(isinstance(event, MigrationBegun) for event in made.events) == 1


def test_of_a_query_that_is_not_there_or_is_being_dropped() -> None:
    made = running(under_way=True)
    with pytest.raises(QueryError, match="there is no query 'nobody'") as caught:
        made.migrate("nobody", TREE, "hybmig")
    assert (caught.value.place, caught.value.remedy) == ("nobody", "use one of: p, q")
    made.drop_query("q")
    with pytest.raises(QueryError, match="there is no query 'q'") as caught:
        made.migrate("q", TREE, "hybmig")
    assert caught.value.remedy == "use one of: p"
    quiet = running(under_way=True)
    quiet.drop_query("q")
    assert [push(made, n) for n in range(4, 8)] == [push(quiet, n) for n in range(4, 8)]
    assert not [state for lane in made.manifest.lane_states.values() for state in lane.states if "B" in state]


def test_a_query_is_dropped_amid_its_migration() -> None:
    """It ends with its query, and another one of its name knows nothing of it."""
    made = running(under_way=True)
    made.drop_query("q")
    made.add_query("q", SQL, plan=TREE)
    push(made, 4)
    assert made.migration("q") is None
    assert not [event for event in made.events if isinstance(event, MigrationEnded)]


@pytest.mark.parametrize("strategy", ["hybmig", "gpt", "jisc", "parallel_track"])
def test_a_restore_whose_migration_this_version_does_not_know(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint stays as it is, so that the version which began the migration goes on with it."""
    made = running(under_way=False)
    made.migrate("q", OTHER_TREE, strategy)
    push(made, 3)
    assert made.migration("q") is not None
    made.save(tmp_path / "saved")
    with monkeypatch.context() as older:
        known = {name: kind for name, kind in strategy_contract.discovered().items() if name != strategy}
        older.setattr(strategy_contract, "discovered", lambda: known)
        with pytest.raises(CheckpointError, match=f"'{strategy}', the strategy of a running migration") as caught:
            push(ms.Engine.load(tmp_path / "saved"), 4)
        assert caught.value.place == "manifest"
        assert "use the version of midstream that began the migration" in caught.value.remedy
    loaded = ms.Engine.load(tmp_path / "saved")
    assert [push(loaded, n) for n in range(4, 12)] == [push(made, n) for n in range(4, 12)]
    assert loaded.migration("q") is None
