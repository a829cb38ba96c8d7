"""Two queries over the tree (A ⋈ B) ⋈ C, by the windows and filters of Wang ch. 6: what is examined, shared and not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.building import engine, table

WIDE, COUNTED = 20, 10
"""The wide window in seconds, which steps of a second fill, and the steps that are counted after."""

FILTERED = ("{0}.v < 0.25", "{0}.v > 0.05 AND {0}.v < 0.3")
"""Filters of a quarter of the rows, of which four fifths pass the other's as well (Table 6.2)."""


EQUAL, LOOPS = "A.k = B.k AND B.j = C.j", "(A.k + B.k) % 10 < 1 AND (B.k + C.k) % 10 < 1"
"""Conditions that a state is searched by, and such as compare each pair (§6.4)."""


def comparisons(
    sharing: str, ratio: float, *, crossed: bool, filtered: bool, on: str = EQUAL, rows: int | None = None
) -> int:
    """Count what two queries compare once their windows are full, whose windows have this ratio at each join."""
    made, random = engine("ABC", sharing=sharing), np.random.default_rng(6)
    for number, condition in enumerate(FILTERED):
        lower, upper = (ratio, 1.0) if number == 0 else (1.0, ratio)
        if not crossed:
            lower = upper = (ratio, 1.0)[number]
        sizes = [
            f"{a} [RANGE {round(WIDE * w * 1_000)} MILLISECONDS]"
            for a, w in zip("ABC", (lower, lower, upper), strict=True)
        ]
        where = "".join(f" AND {condition.format(a)}" for a in "ABC") if filtered else ""
        sql = f"SELECT A.j AS a FROM {', '.join(sizes)} WHERE {on}{where}"
        made.add_query(f"q{number}", sql, plan="((A B) C)")
    before, rows = 0, rows or (50 if filtered else 15)
    for at in range(WIDE + 1 + COUNTED):
        if at == WIDE + 1:
            before = made.metrics()["comparisons"]
        made.push(
            {
                a: table(
                    np.sort(at + random.random(rows)),
                    k=random.integers(0, 10, rows),
                    j=random.integers(0, 10, rows),
                    v=random.random(rows),
                )
                for a in "ABC"
            }
        )
    return int(made.metrics()["comparisons"] - before)


@pytest.mark.parametrize(
    "ratio", [0.1, *(pytest.param(one, marks=pytest.mark.verify) for one in (0.25, 0.5, 0.75, 1.0))]
)
@pytest.mark.parametrize("crossed", [True, False], ids=["narrow below or above", "narrow throughout"])
@pytest.mark.parametrize("filtered", [True, False], ids=["filters", "no filters"])
def test_a_shared_tree_examines_at_most_a_twentieth_more(ratio: float, crossed: bool, filtered: bool) -> None:
    shared, isolated = (
        comparisons(sharing, ratio, crossed=crossed, filtered=filtered) for sharing in ("mem_opt", "off")
    )
    assert shared <= 1.05 * isolated
    if ratio >= 0.5:
        assert shared < isolated, "where the chapter has sharing below"


@pytest.mark.parametrize("ratio", [0.1, *(pytest.param(one, marks=pytest.mark.verify) for one in (0.05, 0.15, 0.25))])
@pytest.mark.parametrize("crossed", [True, False], ids=["narrow below or above", "narrow throughout"])
def test_a_narrow_window_of_few_steps_costs_no_more_in_a_shared_tree_of_loops(ratio: float, crossed: bool) -> None:
    """One to five steps long: a chunk that reaches over the end of the window is cut there when it is probed."""
    shared, isolated = (
        comparisons(sharing, ratio, crossed=crossed, filtered=True, on=LOOPS, rows=20) for sharing in ("mem_opt", "off")
    )
    assert shared <= 1.05 * isolated
