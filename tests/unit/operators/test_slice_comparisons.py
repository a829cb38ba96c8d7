"""Comparisons of a join by slice: a second way to count them, which no sum counts twice."""

from __future__ import annotations

import random
from typing import Any

import pytest

from midstream.model.counters import Counters
from midstream.model.events import MigrationEnded, StepDone
from tests.unit.building import both, engine, table

WINDOWS = (2, 5, 11)


def query(window: int, condition: str = "") -> str:
    return f"SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k{condition} WINDOW {window} SECONDS"


def step(made: Any, draw: random.Random, at: int) -> None:
    def rows() -> Any:
        count = draw.randint(0, 6)
        times = [at + draw.random() * 0.9 for _ in range(count)]
        return table(times, j=range(count), k=[draw.randint(0, 2) for _ in range(count)], v=[1.0 * at] * count)

    made.push({"A": rows(), "B": rows()})


def counted(made: Any) -> tuple[dict[str, int], dict[str, dict[int, int]]]:
    """Comparisons by join, and by join and end of slice."""
    joins: dict[str, int] = {}
    slices: dict[str, dict[int, int]] = {}
    for name, counters in made.manifest.operators.items():
        id = name.operator
        if id.slice is not None:
            slices.setdefault(id.name, {})[id.slice] = counters.comparisons
        elif id.kind == "join":
            joins[id.name] = counters.comparisons
    return joins, slices


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("condition", ["", " AND A.v > 3"], ids=["no filter", "a filter"])
def test_slices_add_up_to_their_join(seed: int, condition: str) -> None:
    draw = random.Random(seed)
    made = engine("AB", sharing="mem_opt")
    for window in WINDOWS:
        made.add_query(f"q{window}", query(window, condition if window == 5 else ""))
    for at in range(25):
        step(made, draw, at)
    joins, slices = counted(made)
    ((join, whole),) = joins.items()
    assert sum(slices[join].values()) == whole > 0
    assert set(slices[join]) == {window * 1_000_000 for window in WINDOWS}
    assert min(slices[join].values()) > 0
    assert made.metrics()["comparisons"] == whole, "no sum counts a comparison twice"
    assert {entry.counters.comparisons for entry in made.manifest.queries.values()} == {whole}
    assert sum(e.comparisons for e in made.events if isinstance(e, StepDone)) == whole


def test_what_a_migration_compared_is_counted_once() -> None:
    spent = {}
    for sharing in ("mem_opt", "pull_up"):
        made = engine("ABC", sharing=sharing)
        for window in WINDOWS:
            sql = f"SELECT A.j AS a FROM A, B, C WHERE A.v <= B.v AND B.k = C.k WINDOW {window} SECONDS"
            made.add_query(f"q{window}", sql)
        for at in range(12):
            made.push(both("ABC", table([at, at], j=[1, 2], k=[1, at], v=[1.0, at])))
        made.migrate("q11", "(A (B C))", "moving_state", together=True)
        made.push()
        spent[sharing] = sum(e.comparisons for e in made.events if isinstance(e, MigrationEnded))
    assert spent["mem_opt"] == spent["pull_up"] > 0


def test_a_slice_that_is_no_more_has_no_counter() -> None:
    made = engine("AB", sharing="mem_opt")
    for window in WINDOWS:
        made.add_query(f"q{window}", query(window))
    draw = random.Random(2)
    for at in range(20):
        step(made, draw, at)
    before = counted(made)[1].popitem()[1]
    made.drop_query("q5")
    made.push()
    after = counted(made)[1].popitem()[1]
    assert after == {end: count for end, count in before.items() if end != 5_000_000}


def test_a_join_without_cuts_counts_no_slices() -> None:
    made = engine("AB")
    made.add_query("q", query(5))
    draw = random.Random(3)
    for at in range(5):
        step(made, draw, at)
    assert counted(made)[1] == {}
    assert sum(made.manifest.operators.values(), Counters()).comparisons == made.metrics()["comparisons"]
