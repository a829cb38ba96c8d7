"""What every strategy keeps, whichever it is: the suite runs over those that are found."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from midstream.migration.strategy_contract import MigrationRequest, Strategy, discovered
from midstream.model.codec import encode
from midstream.model.errors import StrategyError
from midstream.model.events import MigrationBegun, MigrationEnded
from tests.unit.building import both, engine, plan, table

SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.s = C.s WINDOW 4 SECONDS"
PATHS = (
    ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: C A | C: B A]"),
    ("((A B) C)", "[A: B C | B: C A | C: B A]", "[A: C B | B: C A | C: B A]", "[A: B C | B: A C | C: A B]"),
    ("((A B) C)", "eddy(A B C)", "eddy:rank(A B C)", "eddy(C B A)"),
    ("stairs(((A B) C))", "stairs((A (B C)))", "stairs(((A C) B))", "stairs((B (A C)))"),
)
"""First plans, and others that some strategies alone carry to."""

each = pytest.mark.parametrize("kind", discovered().values(), ids=discovered())


@each
def test_it_says_what_it_is_and_where_it_comes_from(kind: Strategy) -> None:
    assert kind.name
    assert all(option.meaning and option.wrong(option.default) is None for option in kind.options)
    found_text = f"{sys.modules[type(kind).__module__].__doc__} {type(kind).__doc__}"
    assert any(paper in found_text for paper in ("Zhu", "HybMig", "JISC", "Wang"))


@each
def test_it_refuses_with_a_reason_or_not_at_all(kind: Strategy) -> None:
    for stateful in (True, False):
        reason = kind.refusal(MigrationRequest("q", "((A B) C)", plan("(A (B C))"), stateful, {}))
        assert reason is None or len(reason) > 10


def path(kind: Strategy) -> tuple[str, ...] | None:
    """Plans that the strategy carries from the first one to all others in turn."""
    moves = (
        (p, [MigrationRequest("q", old, plan(new), True, {}) for old, new in itertools.pairwise(p)]) for p in PATHS
    )
    return next((p for p, found in moves if not any(map(kind.refusal, found))), None)


def answer(strategy: str | None, plans: Sequence[str], moves: dict[int, list[int]]) -> Counter[str]:
    made = engine("ABC")
    made.add_query("q", SQL, plan=plans[0])
    found: Counter[str] = Counter()
    for step in range(14):
        for number in moves.get(step, []):
            if strategy:
                made.migrate("q", plans[number], strategy)
        rows = table(
            [step, step + 0.4, step + 0.4], k=[step % 2, 1, None], j=range(3 * step, 3 * step + 3), s=["x", "y", "x"]
        )
        found.update(map(str, made.push(both("ABC", rows))["q"].to_pylist()))
        json.dumps([encode(state) for state in made.manifest.lane_states.values()])
    if strategy:
        begun = [e for e in made.events if isinstance(e, MigrationBegun)]
        assert [(e.strategy, e.new) for e in begun] == [(strategy, plans[n]) for s in sorted(moves) for n in moves[s]]
        ended = [e for e in made.events if isinstance(e, MigrationEnded)]
        assert Counter(e.plan for e in ended) == Counter(e.new for e in begun)
        assert made.migration("q") is None
    return found


@each
@pytest.mark.parametrize(
    "moves",
    [{0: [1]}, {3: [1]}, {3: [3], 8: [2]}, {2: [1], 3: [0], 4: [1], 5: [0]}, {5: [1, 3, 2]}],
    ids=["at the first step", "once", "by way of a third plan", "back and forth", "three in one step"],
)
def test_the_answer_is_the_same_as_without(kind: Strategy, moves: dict[int, list[int]]) -> None:
    plans = path(kind)
    if plans is None:
        with pytest.raises(StrategyError, match=f"{kind.name} cannot migrate query 'q'"):
            answer(kind.name, PATHS[0], moves)
        return
    if plans[0] == PATHS[0][0] and kind.refusal(MigrationRequest("q", plans[1], plan(plans[0]), True, {})):
        moves = {step: [n or 3 for n in numbers] for step, numbers in moves.items()}  # It cannot lead back to a tree.
    alone = answer(None, plans, {})
    assert alone
    assert answer(kind.name, plans, moves) == alone


@each
def test_a_row_at_the_very_end_of_an_old_row_s_window_still_meets_it(kind: Strategy) -> None:
    plans = path(kind)
    if plans is None:
        return
    made = engine("ABC")
    made.add_query("q", SQL, plan=plans[0])
    made.push(both("BC", table([0], k=[1], j=[7], s=["x"])))
    made.migrate("q", plans[1], kind.name)
    for _ in range(2):  # The watermark comes to the last moment of the old rows, and stays there.
        made.push(both("ABC", table([4])))
    found = made.push({"A": table([4], k=[1], j=[9])})["q"]
    assert found.to_pylist() == [{"a": 9, "b": 7, "c": 7}]


def test_only_pause_drain_resume_carries_no_join_to_any_form() -> None:
    assert [kind.name for kind in discovered().values() if path(kind) is None] == ["pause_drain_resume"]


@each
def test_the_same_plan_is_no_migration(kind: Strategy) -> None:
    plans = path(kind)
    if plans is None:
        return
    made = engine("ABC")
    made.add_query("q", SQL, plan=plans[1])
    with pytest.raises(StrategyError, match="already") as caught:
        made.migrate("q", plans[1], kind.name)
    assert (caught.value.place, caught.value.remedy) == ("query q", "name another plan")


def test_two_queries_migrate_at_one_step_by_different_strategies() -> None:
    """Their transitions are over the same sources and of the same content; once they took each other's states."""
    names = [kind.name for kind in discovered().values() if path(kind) == PATHS[0]]
    made = engine("ABC", sharing="auto")
    for name in (*names, "quiet"):
        made.add_query(name, SQL, plan=PATHS[0][0])
    for step in range(12):
        if step == 3:
            for name in names:
                made.migrate(name, PATHS[0][1], name)
        rows = table([step, step + 0.4], k=[step % 2, 1], j=[2 * step, 2 * step + 1], s=["x", "y"])
        found = {name: sorted(map(str, out.to_pylist())) for name, out in made.push(both("ABC", rows)).items()}
        assert all(found[name] == found["quiet"] for name in names), step
    assert len(names) > 5
    assert sum(isinstance(event, MigrationEnded) for event in made.events) == len(names)
