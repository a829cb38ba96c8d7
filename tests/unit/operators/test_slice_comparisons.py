"""Comparisons of a join by slice: a second way to count them, which no sum counts twice."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from midstream.lab.costs.two_queries import TwoQueries, state_slice
from midstream.model.counters import Counters
from midstream.model.events import MigrationEnded, StepDone
from midstream.sharing.chain_cost import ChainLoad, UnitCosts, chain_cost
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


RATES = [(10, 10.0, 1.0), (40, 10.0, 1.0), (40, 10.0, 0.1), (1_000, 2.0, 0.1), (10_000, 1.0, 0.1)]
"""Rows a second, the narrow window in seconds (the wide one is three times it), and seconds a step."""


@pytest.mark.parametrize(("rate", "narrow", "tick"), RATES)
def test_a_chain_examines_at_most_a_tenth_more_than_equation_5_1(rate: int, narrow: float, tick: float) -> None:
    setting = TwoQueries(lambda_=rate, w_1=narrow, w_2=3 * narrow, s_sigma=0.5, s_join=1.0)
    expected, keys, random = state_slice(setting).cpu, max(rate // 2, 5), np.random.default_rng(rate)
    made = engine("AB", sharing="mem_opt")
    for window, condition in ((setting.w_1, ""), (setting.w_2, " AND A.v < 0.5")):
        size = f"RANGE {round(window * 1_000)} MILLISECONDS"
        made.add_query(f"q{window}", f"SELECT A.j AS a FROM A [{size}], B [{size}] WHERE A.k = B.k{condition}")
    filled = round(setting.w_2 / tick) + 2
    before: dict[int, int] = {}
    for at in range(filled + 20):
        if at == filled:
            before = counted(made)[1].popitem()[1]
        count = round(rate * tick)
        times = np.sort(at + random.random(count)) * tick
        draws = [(random.integers(0, keys, count), random.random(count)) for _ in "AB"]
        made.push({a: table(times, j=range(count), k=k, v=v) for a, (k, v) in zip("AB", draws, strict=True)})
    inner, outer = (
        (count - before[end]) * keys / (20 * tick) for end, count in sorted(counted(made)[1].popitem()[1].items())
    )
    assert 0.9 < (inner + outer) / (expected["probe 1"] + expected["probe 2"]) < 1.1
    assert 0.85 < inner / expected["probe 1"] < 1.25, "what is older than the first slice is examined in the second"


OVERLAPS = [((0.0, 0.3), (0.25, 0.6)), ((0.0, 0.5), (0.5, 1.0)), ((0.0, 0.1), (0.1, 0.2)), ((0.0, 1.0), (0.0, 0.2))]
"""The values that pass the narrow query's filter, and those that pass the wide one's."""


@pytest.mark.parametrize(("first", "second"), OVERLAPS)
@pytest.mark.parametrize("filtered", ["A", "AB"])
@pytest.mark.parametrize(
    ("rate", "narrow", "tick"), [(200, 10.0, 1.0), pytest.param(1_000, 2.0, 0.1, marks=pytest.mark.verify)]
)
def test_filters_that_overlap_little_cost_what_the_chain_of_section_7_4_costs(
    first: tuple[float, float], second: tuple[float, float], filtered: str, rate: int, narrow: float, tick: float
) -> None:
    """Its first slice joins what passes either filter, on both sides: also pairs of which each row passes another one.

    Equation 5.1 has nested filters on A alone. Where both streams have filters that overlap little, up to half of what
    the chain examines no query selects.
    """
    windows, keys, random = (narrow, 3 * narrow), rate // 2, np.random.default_rng(rate)
    made = engine("AB", sharing="mem_opt")
    for window, (low, high) in zip(windows, (first, second), strict=True):
        size = f"RANGE {round(window * 1_000)} MILLISECONDS"
        where = "".join(f" AND {a}.v >= {low} AND {a}.v < {high}" for a in filtered)
        made.add_query(f"q{window}", f"SELECT A.j AS a FROM A [{size}], B [{size}] WHERE A.k = B.k{where}")
    filled, before, values = round(windows[1] / tick) + 2, 0, {a: np.zeros(0) for a in "AB"}
    for at in range(filled + 20):
        if at == filled:
            before = made.metrics()["comparisons"]
        count, rows = round(rate * tick), {}
        times = np.sort(at + random.random(count)) * tick
        for a in "AB":
            v = random.random(count)
            values[a] = np.append(values[a], v)
            rows[a] = table(times, j=range(count), k=random.integers(0, keys, count), v=v)
        made.push(rows)
    one, other, either = (
        {a: float(f(v).mean()) if a in filtered else 1.0 for a, v in values.items()}
        for f in (
            lambda v: (v >= first[0]) & (v < first[1]),
            lambda v: (v >= second[0]) & (v < second[1]),
            lambda v: ((v >= first[0]) & (v < first[1])) | ((v >= second[0]) & (v < second[1])),
        )
    )
    load = ChainLoad(
        windows, rate, rate, 1 / keys,
        (one["A"], other["A"]), (one["B"], other["B"]), (either["A"], other["A"]), (either["B"], other["B"]),
    )  # fmt: skip
    expected = chain_cost(load, UnitCosts(purge=0, route=0, filter=0, union=0), windows) / keys
    assert 0.9 < (made.metrics()["comparisons"] - before) / (20 * tick) / expected < 1.1
