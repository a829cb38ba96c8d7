"""Arrivals: Poisson in time, uniform in value, fixed by the seed, cut by time."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.embedded import Engine
from midstream.embedded.stream_generator import GeneratedStream, Schedule
from midstream.lab.generator import Workload, equal, query

SQL = query("AB", [equal("A.k", "B.k")], "RANGE 1 SECOND")


def workload(rate: float | Schedule = 50.0, size: float | Schedule = 20, seed: int = 1) -> Workload:
    return Workload((GeneratedStream("A", rate, {"k": size}), GeneratedStream("B", 50.0, {"k": 20})), SQL, seed)


def test_a_rate_may_change_while_rows_arrive() -> None:
    times = workload(Schedule(((0, 100), (10, 10)))).arrivals(20)["A"].times / 1e6
    assert 900 < (times < 10).sum() < 1100
    assert 70 < (times >= 10).sum() < 130
    assert (np.diff(times) >= 0).all() and times.max() < 20


def test_gaps_are_exponential() -> None:
    gaps = np.diff(workload(100.0).arrivals(100)["A"].times) / 1e6
    assert gaps.mean() == pytest.approx(0.01, rel=0.05)
    assert gaps.std() == pytest.approx(0.01, rel=0.1), "of an exponential, mean and deviation are equal"


def test_rare_values_meet_with_the_smaller_selectivity() -> None:
    arrivals = workload(size=Schedule(((0, 20), (50, 400)))).arrivals(100)
    a, b = arrivals["A"].rows, arrivals["B"].rows.column("k").to_numpy()
    first = arrivals["A"].before(50)

    def selectivity(values: np.ndarray) -> float:
        return float((values[:, None] == b[None, :]).mean())

    values = a.column("k").to_numpy()
    assert selectivity(values[:first]) == pytest.approx(1 / 20, rel=0.1)
    assert selectivity(values[first:]) == pytest.approx(1 / 400, rel=0.4)


def test_the_seed_fixes_every_row() -> None:
    one, same, other = (workload(seed=seed).arrivals(5)["A"].rows for seed in (1, 1, 2))
    assert one.equals(same) and not one.equals(other)


def test_a_change_to_one_stream_leaves_the_others() -> None:
    assert workload(rate=7.0).arrivals(5)["B"].rows.equals(workload(rate=70.0).arrivals(5)["B"].rows)


def test_slices_share_no_row_and_miss_none() -> None:
    arrivals = workload().arrivals(3)["A"]
    slices = [arrivals.between(i * 0.1, (i + 1) * 0.1) for i in range(30)]
    assert sum(piece.num_rows for piece in slices) == arrivals.rows.num_rows


@pytest.mark.parametrize(("nested", "word"), [(False, "hash"), (True, "scan")])
def test_the_engine_joins_by_the_index_of_the_predicate(nested: bool, word: str) -> None:
    work = workload()
    engine = Engine()
    for source in work.sources:
        engine.create_stream(source.name, source.schema, timestamp="ts")
    engine.add_query("q", query("AB", [equal("A.k", "B.k", nested=nested)], "RANGE 1 SECOND"))
    assert f"window_join {word}" in engine.explain("q")
