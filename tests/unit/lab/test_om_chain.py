"""OM Table 1's column of Chain: it keeps queues short, but is neither fair nor free of starvation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from midstream.lab.om_chain import ScheduleCourse, chain, course, q1, round_robin, slopes
from midstream.lab.om_streams import real_single
from midstream.optimizer.cost.om import OmOperator

QUERIES, ROUNDS = 10, 200
SELECTIVITIES = [0.05 + 0.1 * number for number in range(QUERIES)]


def courses(load: float) -> tuple[ScheduleCourse, ScheduleCourse]:
    """Ten queries like Q1 by Chain and by round-robin, with so many times the work that the processor can do."""
    pipelines = [q1(selectivity) for selectivity in SELECTIVITIES]
    arrivals = np.concatenate([real_single(ROUNDS, 0.5, seed).rates for seed in range(QUERIES)], axis=1)
    work = sum(
        rows * (1 / first.tpr + first.sel / second.tpr)
        for rows, (first, second) in zip(arrivals.mean(axis=0), pipelines, strict=True)
    )
    by_chain, in_turn = (course(pipelines, arrivals, work / load, one) for one in (chain, round_robin))
    return by_chain, in_turn


def shares(found: ScheduleCourse) -> Any:
    """The rows given out by each query, over those that it selects."""
    arrivals = [real_single(ROUNDS, 0.5, seed).rates.sum() for seed in range(QUERIES)]
    return np.array(found.given) / np.array(arrivals) / SELECTIVITIES


def test_an_operator_that_frees_little_goes_with_the_one_behind_it() -> None:
    steep, flat = OmOperator("steep", 0.1, 100.0), OmOperator("flat", 0.9, 100.0)
    assert slopes((flat, steep))[0] == pytest.approx(1 / (0.01 + 0.009)), "not 10, which the first frees by itself"
    slow = OmOperator("slow", 0.9, 1.0)
    assert slopes((steep, slow))[0] == pytest.approx(0.9 / 0.01), "it frees most by itself"


def test_chain_queues_less_than_round_robin_in_a_burst() -> None:
    by_chain, in_turn = courses(load=1.0)
    assert by_chain.queued.mean() < 0.9 * in_turn.queued.mean()
    assert by_chain.queued.max() < in_turn.queued.max()


def test_under_overload_chain_starves_queries_and_round_robin_none() -> None:
    """Fairness: the least share that a query gets of its rows; starvation: the longest wait of one."""
    by_chain, in_turn = courses(load=1.5)
    assert max(in_turn.longest_wait) == 0 and max(by_chain.longest_wait) > ROUNDS / 2
    assert min(shares(by_chain)) < 0.01 < 0.5 < min(shares(in_turn))


def test_with_time_for_all_both_give_out_everything() -> None:
    for found in courses(load=0.2):
        assert shares(found) == pytest.approx(1.0) and found.queued.max() < 1e-6 and max(found.longest_wait) == 0
