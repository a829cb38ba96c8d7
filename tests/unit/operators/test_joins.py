"""Joins by every plan against three nested loops: each combination once, and exact counters."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.plan.tree import bushy_trees
from tests.unit.building import engine, table

Row = tuple[int, int, int]
"""Time in seconds, key, number."""

ORDERS = [
    f"[A: {' '.join(a)} | B: {' '.join(b)} | C: {' '.join(c)}]"
    for a, b, c in itertools.product(*(itertools.permutations(set("ABC") - {x}) for x in "ABC"))
]
TREES = [tree.notation() for tree in bushy_trees("ABC")]
WINDOW = 4
FROM = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE {where} WINDOW 4 SECONDS"
EQUI = FROM.format(where="A.k = B.k AND B.k = C.k")
MIXED = FROM.format(where="A.k = B.k AND B.k - C.k BETWEEN -1 AND 0 AND A.j + C.j > 3")
TESTS: dict[str, Callable[[Row, Row, Row], bool]] = {
    EQUI: lambda a, b, c: a[1] == b[1] == c[1],
    MIXED: lambda a, b, c: a[1] == b[1] and -1 <= b[1] - c[1] <= 0 and a[2] + c[2] > 3,
}


@st.composite
def steps(draw: st.DrawFn) -> list[dict[str, list[Row]]]:
    """Steps in order of time; numbers are different in every row."""
    number = itertools.count()
    begin, found = 0, []
    for _ in range(draw(st.integers(1, 4))):
        times = st.integers(begin, begin + 3)
        rows = st.lists(st.tuples(times, st.integers(0, 2)), max_size=4)
        step = {name: sorted(draw(rows)) for name in "ABC"}
        found.append({name: [(ts, key, next(number)) for ts, key in drawn] for name, drawn in step.items()})
        begin += draw(st.integers(3, 5))
    return found


def answer(sql: str, plan: str, pushed: list[dict[str, list[Row]]]) -> Counter[tuple[int, int, int]]:
    made = engine("ABC")
    made.add_query("q", sql, plan=plan)
    found: Counter[tuple[int, int, int]] = Counter()
    for step in pushed:
        rows = {
            name: table([r[0] for r in drawn], k=[r[1] for r in drawn], j=[r[2] for r in drawn])
            for name, drawn in step.items()
        }
        out = made.push(rows)["q"]
        found.update(zip(*(out.column(i).to_pylist() for i in range(3)), strict=True))
    return found


@pytest.mark.parametrize("sql", [EQUI, MIXED], ids=["equi", "mixed"])
@settings(max_examples=12, deadline=None)
@given(pushed=steps(), plan=st.sampled_from([*TREES, *ORDERS]), other=st.sampled_from(ORDERS))
def test_every_plan_makes_each_combination_once(
    sql: str, pushed: list[dict[str, list[Row]]], plan: str, other: str
) -> None:
    rows = {name: [row for step in pushed for row in step[name]] for name in "ABC"}
    wanted: Counter[tuple[int, int, int]] = Counter()
    for combination in itertools.product(rows["A"], rows["B"], rows["C"]):
        times = [row[0] for row in combination]
        if max(times) - min(times) <= WINDOW and TESTS[sql](*combination):
            a, b, c = (row[2] for row in combination)
            wanted[a, b, c] += 1
    assert answer(sql, plan, pushed) == wanted
    assert answer(sql, other, pushed) == wanted


def test_all_probing_orders_agree_on_a_step_that_brings_all_streams() -> None:
    pushed = [{name: [(0, 1, 10 * i), (1, 1, 10 * i + 1)] for i, name in enumerate("ABC")}]
    wanted = Counter(itertools.product((0, 1), (10, 11), (20, 21)))
    for plan in [*ORDERS, *TREES]:
        assert answer(EQUI, plan, pushed) == wanted, plan


def counters(where: str, sides: tuple[list[tuple[int, int]], ...], window: str = "WINDOW 4 SECONDS") -> dict[str, int]:
    """The counters of a two-way join after a step for each list of (time, key), A's and B's in turn."""
    made = engine("AB")
    made.add_query("q", f"SELECT A.k FROM A, B WHERE {where} {window}")
    for number, side in enumerate(sides):
        made.push({"AB"[number % 2]: table([ts for ts, _ in side], k=[key for _, key in side])})
    found: dict[str, int] = made.metrics()["queries"]["q"]
    return found


def test_a_hash_join_compares_pairs_of_equal_key_only() -> None:
    found = counters("A.k = B.k", ([(0, 1), (0, 1), (0, 2)], [(1, 1), (1, 2), (1, 3)]))
    assert (found["comparisons"], found["predicates"], found["rows_out"]) == (3, 0, 3)
    assert found["rows_in"] == 6


def test_a_nested_loop_compares_all_pairs_in_the_state() -> None:
    found = counters("A.k * B.k = 2", ([(0, 1), (0, 1), (0, 2)], [(1, 1), (1, 2), (1, 3)]))
    assert (found["comparisons"], found["predicates"], found["rows_out"]) == (9, 9, 3)


def test_a_band_join_compares_the_range_it_searches() -> None:
    found = counters("A.k - B.k BETWEEN 0 AND 1", ([(0, 1), (0, 5), (0, 9)], [(1, 1), (1, 8)]))
    assert (found["comparisons"], found["predicates"], found["rows_out"]) == (2, 2, 2)


def test_rows_that_the_watermark_has_passed_are_no_longer_compared() -> None:
    """A row is purged once the watermark of the step before has passed its window; until then it is compared."""
    sides = ([(0, 1)], [(0, 1)], [(9, 1)], [(9, 1)], [(10, 1)], [(10, 1)])
    assert [counters("A.k = B.k", sides[: n + 1])["comparisons"] for n in range(6)] == [0, 1, 2, 4, 5, 7]


def test_rows_are_inserted_and_purged_by_number() -> None:
    found = counters("A.k = B.k", ([(0, 1), (0, 2)], [(0, 1)], [(9, 1)], [(9, 1)], [(20, 7)]))
    # A row is in its base rows and in its one index; what the watermark 9 leaves is one row of A twice, and A's last.
    assert found["inserted"] == 2 * 6
    assert found["inserted"] - found["purged"] == 2 * 3
    assert found["state_rows"] == 3


def test_probing_hops_are_counted() -> None:
    made = engine("ABC")
    made.add_query("q", EQUI, plan="[A: B C | B: A C | C: A B]")
    made.push({"A": table([0, 0], k=[1, 2], j=[0, 1]), "B": table([0], k=[1], j=[2])})
    # A's two rows look into B before B's row is there; B's row finds one row of A and goes on with it to C.
    assert made.metrics()["queries"]["q"]["hops"] == 2 + 1 + 1
    assert made.metrics()["queries"]["q"]["comparisons"] == 1
