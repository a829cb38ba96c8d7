"""JISC's counting of complete states: the propositions against the sums they stand for, and against plans."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import log
from typing import Any

import pytest
from pytest import approx

from midstream.lab.costs import jisc_costs
from midstream.plan.decompose import subplans
from midstream.plan.tree import Join, Leaf, Plan
from tests.unit.building import engine, table

SIZES = [2, 3, 5, 20, 100]


def pairs(n: int) -> list[tuple[int, int]]:
    return list(combinations(range(1, n + 1), 2))


def left_deep(streams: list[str]) -> Plan:
    plan: Plan = Leaf(streams[0])
    for stream in streams[1:]:
        plan = Join(plan, Leaf(stream))
    return plan


def incomplete(i: int, j: int, n: int) -> int:
    """The intermediate states of a left-deep plan of n joins that the old plan lacks; both leaves have position 1."""
    streams = ["S0", *(f"S{p}" for p in range(1, n + 1))]
    new = list(streams)
    new[i], new[j] = new[j], new[i]
    return len(subplans(left_deep(new)).keys() - subplans(left_deep(streams)).keys())


@pytest.mark.parametrize("n", SIZES)
def test_the_probabilities_sum_to_one(n: int) -> None:
    assert sum(jisc_costs.prob(i, j, n) for i, j in pairs(n)) == approx(1)


@pytest.mark.parametrize("n", SIZES)
def test_proposition_1_is_the_mean_and_variance_of_the_distribution(n: int) -> None:
    mean = sum(jisc_costs.c(i, j, n) * jisc_costs.prob(i, j, n) for i, j in pairs(n))
    square = sum(jisc_costs.c(i, j, n) ** 2 * jisc_costs.prob(i, j, n) for i, j in pairs(n))
    assert jisc_costs.mean_c(n) == approx(mean)
    assert jisc_costs.var_c(n) == approx(square - mean**2, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_an_exchange_leaves_as_many_states_complete_as_equation_3_says(n: int) -> None:
    """The root is complete and counted, as in the paper."""
    for i, j in pairs(n):
        assert n - incomplete(i, j, n) == jisc_costs.c(i, j, n)


def test_the_propositions_hold_of_the_states_that_the_engine_keeps() -> None:
    """Every exchange in a plan of five joins over six streams, weighed by its probability.

    Of the four states that the engine keeps those between the two positions are incomplete; the root is complete.
    """
    n = 5
    kept = {(i, j): complete_in_engine(i, j) for i, j in pairs(n)}
    assert kept == {(i, j): jisc_costs.c(i, j, n) for i, j in pairs(n)}
    mean = sum(jisc_costs.prob(*pair, n) * count for pair, count in kept.items())
    square = sum(jisc_costs.prob(*pair, n) * count**2 for pair, count in kept.items())
    assert (mean, square - mean**2) == (approx(jisc_costs.mean_c(n)), approx(jisc_costs.var_c(n)))
    for epsilon in (0.1, 0.3, 0.5):
        far = sum(jisc_costs.prob(*pair, n) for pair, count in kept.items() if abs(count / mean - 1) > epsilon)
        assert far <= jisc_costs.concentration(n, epsilon) + 1e-9


def complete_in_engine(i: int, j: int) -> int:
    """The states of five joins that an exchange leaves complete, by those that the engine lists on."""
    names = list("ABCDEF")
    keys = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    made = engine("ABCDEF")
    made.add_query(
        "q", f"SELECT A.k FROM {', '.join(names)} WHERE {keys} WINDOW 9 SECONDS", left_deep(names).notation()
    )
    made.push({name: table([1], k=[1]) for name in names})
    before = intermediate(made)
    names[i], names[j] = names[j], names[i]
    made.migrate("q", left_deep(names).notation(), "moving_state")
    made.push()
    assert len(intermediate(made)) == len(before) == 4
    return 5 - len(intermediate(made) - before)


def intermediate(made: Any) -> set[str]:
    (lane,) = made.manifest.lane_states.values()
    return {state for state in lane.states if "+" in state}


def test_the_leading_terms_of_proposition_2_are_approached_slowly() -> None:
    """Relative errors fall, as O(1 / ln n) over n falls."""
    sizes = [10**2, 10**4, 10**6]
    means = [abs(jisc_costs.mean_c(n) / jisc_costs.mean_c_asymptotic(n) - 1) for n in sizes]
    variances = [abs(jisc_costs.var_c(n) / jisc_costs.var_c_asymptotic(n) - 1) for n in sizes]
    assert means == sorted(means, reverse=True)
    assert variances == sorted(variances, reverse=True)


def test_the_remainder_of_proposition_2_grows_where_it_should_vanish() -> None:
    """O(1 / ln n) is printed; it is of the order n / ln² n, with the factor (1 - gamma) / 2."""
    sizes = [10**3, 10**4, 10**5, 10**6]
    remainders = [jisc_costs.mean_c_asymptotic(n) - jisc_costs.mean_c(n) for n in sizes]
    assert remainders == sorted(remainders)
    assert remainders[-1] > 1000 / log(sizes[-1])
    scaled = [r / (n / log(n) ** 2) for r, n in zip(remainders, sizes, strict=True)]
    assert all(0.2 < s < 0.25 for s in scaled)


def test_the_number_of_complete_states_concentrates() -> None:
    bounds = [jisc_costs.concentration(n, 0.3) for n in (100, 10**4, 10**6)]
    assert bounds == sorted(bounds, reverse=True)
    n = 50
    far = sum(
        jisc_costs.prob(i, j, n) for i, j in pairs(n) if abs(jisc_costs.c(i, j, n) / jisc_costs.mean_c(n) - 1) > 0.3
    )
    assert far <= jisc_costs.concentration(n, 0.3)
