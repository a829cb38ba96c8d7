"""What every strategy keeps, whichever it is: the suite runs over those that are found."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from midstream.migration.base import Move, Strategy
from midstream.migration.discovery import discovered
from midstream.model.errors import CheckpointError, StrategyError
from midstream.model.events import MigrationBegun, MigrationEnded
from tests.unit.building import both, engine, plan, table

SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.s = C.s WINDOW 4 SECONDS"
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: C A | C: B A]")
each = pytest.mark.parametrize("kind", discovered().values(), ids=discovered())


@each
def test_it_says_what_it_is_and_where_it_comes_from(kind: Strategy) -> None:
    assert kind.name
    assert isinstance(kind.options, frozenset)
    told = f"{sys.modules[type(kind).__module__].__doc__} {type(kind).__doc__}"
    assert any(paper in told for paper in ("Zhu", "HybMig", "JISC", "Wang"))


@each
def test_it_refuses_with_a_reason_or_not_at_all(kind: Strategy) -> None:
    for stateful in (True, False):
        reason = kind.refusal(Move("q", "((A B) C)", plan("(A (B C))"), stateful, {}))
        assert reason is None or len(reason) > 10


@each
def test_a_box_it_never_snapshots_cannot_be_restored(kind: Strategy) -> None:
    if type(kind).restore is Strategy.restore:
        with pytest.raises(CheckpointError, match="cannot be under way between steps"):
            kind.restore({"box": kind.name}, lambda notation: pytest.fail("nothing to compile"))


def answer(strategy: str | None, moves: dict[int, list[str]]) -> Counter[str]:
    made = engine("ABC")
    made.add_query("q", SQL, plan=PLANS[0])
    found: Counter[str] = Counter()
    for step in range(14):
        for notation in moves.get(step, []):
            if strategy:
                made.migrate("q", notation, strategy)
        rows = table(
            [step, step + 0.4, step + 0.4], k=[step % 2, 1, None], j=range(3 * step, 3 * step + 3), s=["x", "y", "x"]
        )
        found.update(map(str, made.push(both("ABC", rows))["q"].to_pylist()))
        json.dumps([state.to_json() for state in made.manifest.lane_states.values()])
    if strategy:
        begun = [e for e in made.events if isinstance(e, MigrationBegun)]
        assert [(e.strategy, e.new) for e in begun] == [(strategy, n) for s in sorted(moves) for n in moves[s]]
        assert [e.plan for e in made.events if isinstance(e, MigrationEnded)][-1] == begun[-1].new
        assert made.migration("q") is None
    return found


@each
@pytest.mark.parametrize(
    "moves",
    [
        {0: [PLANS[1]]},
        {3: [PLANS[1]]},
        {3: [PLANS[3]], 8: [PLANS[2]]},
        {2: [PLANS[1]], 3: [PLANS[0]], 4: [PLANS[1]], 5: [PLANS[0]]},
        {5: [PLANS[1], PLANS[3], PLANS[2]]},
        {5: [PLANS[0]], 6: [PLANS[3], PLANS[3]]},
    ],
    ids=["at the first step", "once", "by way of a multi-way join", "back and forth", "three in one step", "to itself"],
)
def test_the_answer_is_the_same_as_without(kind: Strategy, moves: dict[int, list[str]]) -> None:
    alone = answer(None, {})
    assert alone
    if kind.refusal(Move("q", PLANS[0], plan(PLANS[1]), True, {})) is None:
        assert answer(kind.name, moves) == alone
    else:
        with pytest.raises(StrategyError, match=f"{kind.name} cannot carry query 'q'"):
            answer(kind.name, moves)
