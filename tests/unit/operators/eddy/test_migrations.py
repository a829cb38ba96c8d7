"""From every plan form to every other: the answer is the same, and the counters tell which way it was."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from midstream.model.errors import StrategyError
from midstream.model.events import MigrationBegun, MigrationEnded, StateRebuilt, StepDone
from tests.unit.building import both, engine, table

SQL = (
    "SELECT A.j AS a, B.j AS b, C.j AS c, D.j AS d FROM A, B, C, D "
    "WHERE A.k = B.k AND B.k = C.k AND B.s = D.s WINDOW 4 SECONDS"
)
TREE = "(((A B) C) D)"
ORDERS = "[A: B C D | B: C A D | C: B A D | D: B A C]"
FORMS = (
    TREE,
    "((A C) (B D))",
    ORDERS,
    "eddy(A B C D)",
    "eddy:rank(A B C D)",
    f"stairs({TREE})",
    "stairs(((A C) (B D)))",
)
OWN = {"m_join": ORDERS, "cacq": "eddy(A B C D)", "stairs": "stairs(((A C) (B D)))"}


def rows(step: int) -> dict[str, Any]:
    numbers = range(3 * step, 3 * step + 3)
    return both("ABCD", table([step, step + 0.4, step + 0.4], k=[step % 2, 1, None], j=numbers, s=["x", "y", "x"]))


def run(plan: str, moves: dict[int, tuple[str, str]], **options: Any) -> tuple[Counter[str], Any]:
    """The answer of a query that moves at these steps to these plans, each by a strategy."""
    made = engine("ABCD", **options)
    made.add_query("q", SQL, plan=plan)
    found: Counter[str] = Counter()
    for step in range(9):
        if step in moves:
            made.migrate("q", *moves[step])
        found.update(map(str, made.push(rows(step))["q"].to_pylist()))
    return found, made


@pytest.fixture(scope="module")
def alone() -> Counter[str]:
    found, _ = run(TREE, {})
    assert found
    return found


def states(made: Any) -> set[str]:
    """The labels of the states that are listed."""
    (lane,) = made.manifest.lane_states.values()
    return {state.split(".")[0] for state in lane.states if not state.endswith((".rows", ".table"))}


def comparisons(made: Any) -> list[int]:
    return [event.comparisons for event in made.events if isinstance(event, StepDone)]


@pytest.mark.parametrize(("old", "new"), list(itertools.permutations(FORMS, 2)))
def test_moving_state_carries_every_form_to_every_other(old: str, new: str, alone: Counter[str]) -> None:
    found, made = run(old, {5: (new, "moving_state")})
    assert found == alone
    assert made.explain("q", format="json")["plan"] == new


@pytest.mark.parametrize("old", FORMS)
@pytest.mark.parametrize("strategy", OWN)
def test_their_own_strategies_come_from_every_form_and_end_at_once(
    strategy: str, old: str, alone: Counter[str]
) -> None:
    if old == OWN[strategy]:
        old = FORMS[0]
    found, made = run(old, {4: (OWN[strategy], strategy)})
    assert found == alone
    (begun,) = [event for event in made.events if isinstance(event, MigrationBegun)]
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    assert begun.step == ended.step == 4
    assert (begun.strategy, begun.old, begun.new, ended.plan) == (strategy, old, OWN[strategy], OWN[strategy])
    assert made.migration("q") is None
    if strategy != "stairs":
        assert ended.comparisons == 0
        assert states(made) == set("ABCD"), "nothing but base rows"


@pytest.mark.parametrize("strategy", OWN)
def test_one_after_the_other_and_back(strategy: str, alone: Counter[str]) -> None:
    moves = {step: (form, "moving_state") for step, form in enumerate(FORMS[:5])}
    found, _ = run(ORDERS, {**moves, 5: (OWN[strategy], strategy), 7: (TREE, "moving_state")}, lanes=3)
    assert found == alone


def test_another_order_costs_nothing() -> None:
    other = "[A: D C B | B: A D C | C: A D B | D: A C B]"
    made = engine("ABCD")
    made.add_query("q", SQL, plan=ORDERS)
    for step in range(4):
        made.push(rows(step))
    before = states(made)
    made.migrate("q", other, "m_join")
    made.push()
    assert comparisons(made)[-1] == 0
    assert states(made) == before


@pytest.mark.parametrize(
    ("strategy", "plan", "reason"),
    [
        ("m_join", TREE, "has no probing orders; write such as \\[A: B C D | B: A C D"),
        ("m_join", "eddy(A B C D)", "probing orders"),
        ("cacq", TREE, "is not an eddy; write such as eddy\\(A B C D\\)"),
        ("cacq", f"stairs({TREE})", "is not an eddy"),
        ("stairs", TREE, "keeps no STAIRs; write such as stairs\\(\\(\\(\\(A B\\) C\\) D\\)\\)"),
        ("stairs", "eddy(A B C D)", "keeps no STAIRs"),
        ("stairs", ORDERS, "keeps no STAIRs"),
    ],
)
def test_other_forms_are_refused_and_the_query_runs_on(
    strategy: str, plan: str, reason: str, alone: Counter[str]
) -> None:
    made = engine("ABCD")
    old = "((A C) (B D))"
    made.add_query("q", SQL, plan=old)
    found: Counter[str] = Counter()
    for step in range(9):
        found.update(map(str, made.push(rows(step))["q"].to_pylist()))
        with pytest.raises(StrategyError, match=f"{strategy} cannot migrate query 'q': .*{reason}") as raised:
            made.migrate("q", plan, strategy)
        assert raised.value.remedy
    assert found == alone


CASES = [
    (f"stairs({TREE})", "stairs((((B C) A) D))"),
    (f"stairs({TREE})", "stairs(((A C) (B D)))"),
    (TREE, "stairs(((A C) (B D)))"),
    ("eddy(A B C D)", f"stairs({TREE})"),
    (ORDERS, f"stairs({TREE})"),
]


@pytest.mark.parametrize(("old", "new"), CASES)
def test_the_eager_form_equals_moving_state(old: str, new: str) -> None:
    _, eager = run(old, {5: (new, "stairs")})
    _, moving = run(old, {5: (new, "moving_state")})
    assert comparisons(eager) == comparisons(moving)
    one, other = ([e.comparisons for e in made.events if isinstance(e, MigrationEnded)] for made in (eager, moving))
    assert one == other
    assert one[0] > 0
    assert states(eager) == states(moving)


def moved(made: Any) -> dict[str, int]:
    counted = {
        name.operator.split()[-1].split(".")[0]: c.moved for name, c in made.manifest.operators.items() if c.moved
    }
    return dict(sorted(counted.items()))


def test_promoted_and_demoted_entries_are_counted() -> None:
    made = engine("ABC")
    sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 60 SECONDS"
    made.add_query("q", sql, plan="stairs(((A B) C))")
    keys: dict[str, list[Any]] = {"A": [1, 1, 2], "B": [1, 2, 2, 3], "C": [2, 2, 1, 3, None]}
    for name, column in keys.items():
        made.push({name: table([1] * len(column), k=column)})
    made.migrate("q", "stairs((A (B C)))", "stairs")
    made.push()
    (promoted,) = [event for event in made.events if isinstance(event, StateRebuilt)]
    # B C has a pair of key 1, four of key 2 and one of key 3; A B had two pairs of key 1 and two of key 2.
    assert (promoted.state.split(".")[0], promoted.rows, promoted.comparisons) == ("B+C", 6, 6)
    assert moved(made)["B+C"] == 6
    assert made.metrics()["moved"] == 6 + 4
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    assert ended.comparisons == 6


def test_a_join_counts_no_hops_and_stairs_do() -> None:
    for plan, wanted in (("((A B) C)", 0), ("stairs(((A B) C))", 3 + 1)):
        made = engine("ABC")
        made.add_query("q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 9 SECONDS", plan=plan)
        made.push({name: table([0], k=[1]) for name in "ABC"})
        # Three rows, and the pair of A and B that returns to the eddy; the result leaves it.
        assert made.metrics()["hops"] == wanted


def test_a_difference_has_no_eddy() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.j FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 2 SECONDS]")
    for plan in ("eddy(A B)", "stairs((A B))"):
        with pytest.raises(Exception, match="the plan of a difference must be left-deep and begin with A"):
            made.migrate("q", plan)


def test_explain_shows_them() -> None:
    made = engine("ABC")
    made.add_query(
        "q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.v < C.v WINDOW 5 SECONDS", plan="eddy:rank(C B A)"
    )
    shown = made.explain("q").splitlines()
    assert shown[1] == "plan  eddy:rank(C B A)"
    assert shown[3:] == [
        "eddy by rank over A [hash A.k], B [hash B.k; band B.v], C [band C.v]",
        "├─ source A [5 s]",
        "├─ source B [5 s]",
        "└─ source C [5 s]",
    ]
    made.migrate("q", "stairs((A (B C)))")
    assert made.explain("q").splitlines()[3:] == [
        "stairs hash A.k = B.k",
        "├─ source A [5 s]",
        "└─ stairs band B.v ~ C.v where B.v < C.v",
        "   ├─ source B [5 s]",
        "   └─ source C [5 s]",
    ]
