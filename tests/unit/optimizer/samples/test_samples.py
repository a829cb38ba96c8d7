"""Sizes of joins from samples of the rows that are alive, judged by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from benchmarks.estimates.errors import MOST_95, MOST_MEDIAN, Errors, errors
from benchmarks.estimates.shapes import SHAPES
from benchmarks.estimates.standing import Standing, standing
from benchmarks.estimates.streams import KINDS, streams
from benchmarks.estimates.truth import Truth
from midstream.operators.candidates import equal_pairs
from midstream.optimizer.bounded import Origin
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.observe import statistics
from midstream.optimizer.samples.expansion import ENOUGH_PAIRS
from midstream.optimizer.samples.sample_reading import samples_of
from midstream.optimizer.samples.samples import Samples
from midstream.units.program import observed
from tests.unit.building import engine, plan, table

ALL = 1_000_000
CONDITIONS = {
    "one key": "A.k = B.k AND B.k = C.k",
    "two keys in a row": "A.k = B.k AND B.m = C.m",
    "two keys of one pair": "A.k = B.k AND A.m = B.m AND B.k = C.k",
    "two keys of one source that equal a third": "A.k = B.k AND B.k = C.k AND B.k = C.m",
    "a key and an expression of one source": "A.k = B.k AND B.k = C.k AND B.k = C.k + C.m - 3",
    "a circle of keys": "A.k = B.k AND B.m = C.m AND A.x - C.x BETWEEN -0.5 AND 0.5",
    "a key and a band": "A.k = B.k AND A.x - B.x BETWEEN 0 AND 0.7 AND B.x - C.x BETWEEN -0.2 AND 0.2",
    "an open band": "A.x < B.x AND B.m = C.m",
    "a predicate of two": "A.k * B.m < 20 AND B.k = C.k",
    "a predicate of three": "A.k + B.m < C.k - 2",
    "nothing between two": "A.k = B.k AND A.k * C.m > 12",
}


def small(seed: int, rows: int = 60) -> dict[str, Any]:
    """Streams with few keys, some of them NULL."""
    random = np.random.default_rng(seed)
    found = {}
    for name in "ABC":
        times = np.sort(random.integers(0, 1_000_000, rows))
        times[-1] = 1_000_000
        keys = {c: pa.array([int(v) if v < 7 else None for v in random.integers(0, 8, rows)], pa.int64()) for c in "km"}
        numbers = pa.array([float(v) if v < 1.5 else None for v in random.normal(0, 1, rows)], pa.float64())
        found[name] = {"ts": times, "x": numbers, **keys}
    return found


def sampled(job: Standing, budget: int, seed: int = 0) -> Samples:
    return samples_of(job.manifest, job.observed, job.store, budget, seed)


def sets_of(names: str) -> list[frozenset[str]]:
    return [frozenset(found) for size in range(1, len(names) + 1) for found in combinations(names, size)]


@pytest.mark.parametrize("where", CONDITIONS.values(), ids=CONDITIONS)
def test_where_all_rows_are_in_the_sample_sizes_are_exact(where: str) -> None:
    """Every set of streams, whether conditions tie it together or not; NULL joins nothing."""
    data = small(3)
    truth = Truth(data)
    samples = sampled(standing(f"SELECT A.k FROM A, B, C WHERE {where} WINDOW 9 SECONDS", data, chunk=25), ALL)
    for subset in sets_of("ABC"):
        kept = [c for c in _conjuncts(where) if {name for name in "ABC" if f"{name}." in c} <= subset]
        if subset == frozenset("AC") and "A.k = B.k" in where:
            kept += [c.replace("B.k", "A.k") for c in _conjuncts(where) if c.startswith("B.k = C.")]
        condition = " AND ".join(kept) or "TRUE"
        expected = truth.counted(f"SELECT count(*) FROM {', '.join(sorted(subset))} WHERE {condition}")
        found = samples.rows(subset)
        assert (found.value, found.low, found.high) == pytest.approx((expected,) * 3), sorted(subset)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("where", ["A.x < B.x", "A.x >= B.x + 1", "A.x - B.x BETWEEN -1 AND 1"])
def test_bands_meet_infinite_numbers_and_nan_as_the_engine_does(where: str) -> None:
    """NULL meets nothing; whatever an open band accepts of NaN and the infinities, which have no difference, counts."""
    odd = [1.0, float("inf"), None, float("-inf"), 2.0, float("nan"), 1.5, float("inf"), None]
    times = {"ts": np.arange(len(odd))}
    data = {"A": {**times, "x": pa.array(odd)}, "B": {**times, "x": pa.array(odd[::-1])}}
    samples = sampled(standing(f"SELECT A.x FROM A, B WHERE {where} WINDOW 9 SECONDS", data, chunk=4), ALL)
    expected = Truth(data).counted(f"SELECT count(*) FROM A, B WHERE {where}")
    assert samples.rows(frozenset("AB")).value == pytest.approx(expected)


def _conjuncts(where: str) -> list[str]:
    """The conditions; the AND of a BETWEEN belongs to it."""
    found: list[str] = []
    for piece in where.split(" AND "):
        if found and "BETWEEN" in found[-1] and " AND " not in found[-1]:
            found[-1] += f" AND {piece}"
        else:
            found.append(piece)
    return found


@pytest.fixture(scope="module")
def far_from_all() -> dict[tuple[str, str], Errors]:
    """The errors of all kinds of streams under all shapes of query, with a fourth of the rows sampled."""
    found = {}
    for kind in KINDS:
        data = streams(kind, 2400, 1)
        truth = Truth(data)
        for name, shape in SHAPES.items():
            found[kind, name] = errors(shape, sampled(standing(shape.sql, data, chunk=800), 600), truth)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_every_set_of_six_streams_are_near_the_truth(
    far_from_all: Mapping[tuple[str, str], Errors], kind: str
) -> None:
    """Keys that are uniform, few, skewed, correlated; with bands: a median q-error of 1.3 and 3 for 95 of 100."""
    found = Errors.all([one for (streams_of, _), one in far_from_all.items() if streams_of == kind])
    assert len(found.found) == 114
    assert found.median <= MOST_MEDIAN
    assert found.most_of_95 <= MOST_95


def test_the_truth_is_mostly_within_the_bounds(far_from_all: Mapping[tuple[str, str], Errors]) -> None:
    found = Errors.all(list(far_from_all.values()))
    assert found.within >= 0.8 * len(found.found)


@pytest.mark.parametrize("kind", ["few keys", "zipf 1.1", "correlated"])
def test_estimates_are_right_on_average(kind: str) -> None:
    """Over many seeds the mean is as near to the truth as chance allows."""
    shape, data = SHAPES["a chain of keys"], streams(kind, 1000, 2)
    job, truth = standing(shape.sql, data), Truth(data)
    for subset in (frozenset("AB"), frozenset("ABC")):
        found = np.array([sampled(job, 300, seed).rows(subset).value for seed in range(25)])
        error = found.std(ddof=1) / len(found) ** 0.5
        assert abs(found.mean() - truth.size(shape, subset)) <= 3.5 * error


@pytest.mark.parametrize("hot", [0.004, 0.01, 0.05])
def test_a_join_that_one_key_makes_is_known_by_the_counts_of_that_key(hot: float) -> None:
    """A key of 1 % of the rows makes 19 of 20 pairs: no chance may decide whether it is in the sample."""
    shape = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.m = C.m WINDOW 9 SECONDS"
    for seed in range(5):
        random, data, rows = np.random.default_rng(seed), {}, 40_000
        for at, (name, tied) in enumerate({"A": 0.1, "B": 0.5, "C": 0.0}.items(), 1):
            chance, others = random.random(rows), at * 10**9 + random.integers(0, 10**7, rows)
            few = np.where(chance < hot + tied, random.integers(1, rows // 4, rows), others)
            times = np.sort(random.integers(0, 1_000_000, rows))
            times[-1] = 1_000_000
            data[name] = {
                "ts": times,
                "k": np.where(chance < hot, 0, few),
                "m": random.integers(0, rows, rows),
                "x": 1.0 * times,
            }
        expected = Truth(data).counted("SELECT count(*) FROM A, B WHERE A.k = B.k")
        found = sampled(standing(shape, data), 4096, seed).rows(frozenset("AB"))
        assert found.value == pytest.approx(expected, rel=0.1), seed
        assert found.low <= expected <= found.high, seed


def living(made: Any, name: str, budget: int = ALL) -> Samples:
    return samples_of(made.manifest, observed(made.manifest, name), made._store, budget)


def keys(*values: int) -> dict[str, list[int]]:
    return {"k": list(values)}


def test_rows_that_are_dead_do_not_count() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT x.k FROM A x, B y WHERE x.k = y.k WINDOW 10 SECONDS")
    made.push({"A": table([0, 5, 6], k=[1, 1, 1]), "B": table([0, 9], k=[1, 1])})
    assert living(made, "q").rows(frozenset("xy")).value == 6
    made.push({"A": table([12], k=[2]), "B": table([12], k=[1])})
    found = living(made, "q")
    assert [found.rows(frozenset(n)).value for n in ("x", "y", "xy")] == [3, 2, 4]


def test_rows_behind_which_a_stream_has_fallen_are_in_no_window_with_new_ones() -> None:
    """B has stopped, so the watermark keeps all of A, but only rows that are near B's meet them."""
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    made.push({"A": table([*range(40)], k=[1] * 40), "B": table([0, 1], k=[1, 1])})
    found = living(made, "q")
    assert found.windows
    assert found.rows(frozenset("AB")).value == 11 + 12


def test_where_streams_are_behind_rows_count_that_live_at_one_time() -> None:
    """D has stopped: every set of streams of which all rows are drawn, with NULL and several rows at one time."""
    made, random, data = engine("ABCD"), np.random.default_rng(5), {}
    made.add_query("q", "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 10 SECONDS")
    for name in "ABCD":
        times = np.sort(random.integers(0, 8 if name == "D" else 40, 60)).tolist()
        data[name] = table(times, k=[int(v) if v < 6 else None for v in random.integers(0, 7, 60)])
    made.push(data)
    found, tables = living(made, "q"), duckdb.connect()
    assert found.windows
    for name, one in data.items():
        tables.register(name, one)
    for subset in sets_of("ABCD"):
        pairs = [*combinations(sorted(subset), 2)]
        near = [f"{a}.k = {b}.k AND abs(epoch({a}.ts) - epoch({b}.ts)) <= 10" for a, b in pairs]
        sql = f"SELECT count(*) FROM {', '.join(sorted(subset))} WHERE {' AND '.join(near) or 'TRUE'}"
        (expected,) = tables.query(sql).fetchall()[0]
        assert found.rows(subset).value == expected, sorted(subset)


def test_where_a_stream_is_behind_no_more_pairs_are_made_than_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key has 200 rows of each stream: of 400,000 pairs 300,000 are in one window, which a part of them tells."""
    made, looked_at = engine("AB"), list[int]()
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k AND A.j = B.j WINDOW 100 SECONDS")
    some = {"k": [number % 10 for number in range(2000)], "j": [1] * 2000}
    made.push({"A": table([0.1 * number for number in range(2000)], **some), "B": table([50.0] * 2000, **some)})

    def counted(*sides: Any) -> Iterator[tuple[Any, Any]]:
        for one, other in equal_pairs(*sides):
            looked_at.append(len(one))
            yield one, other

    monkeypatch.setattr("midstream.optimizer.samples.expansion.equal_pairs", counted)
    found = living(made, "q")
    assert found.windows and found.rows(frozenset("AB")).value == pytest.approx(1500 * 200, rel=0.1)
    assert 0.8 * ENOUGH_PAIRS < sum(looked_at) < 1.2 * ENOUGH_PAIRS < 100_000


def test_windows_that_count_rows_end_by_arrivals() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A [ROWS 3], B [ROWS 50] WHERE A.k = B.k")
    made.push({"A": table([*range(20)], k=[1] * 20), "B": table([*range(20)], k=[1] * 20)})
    assert living(made, "q").rows(frozenset("A")).value == 3


def test_a_query_of_a_chain_sees_its_own_rows() -> None:
    """One query reads a wider window, another a filter: each has samples of what it sees itself."""
    made = engine("AB")
    made.add_query("wide", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    made.add_query("narrow", "SELECT A.k FROM A, B WHERE A.k = B.k AND A.j > 2 WINDOW 5 SECONDS")
    random = np.random.default_rng(4)
    rows = {
        name: table([i / 4 for i in range(81)], **{c: random.integers(0, 5, 81).tolist() for c in "kj"})
        for name in "AB"
    }
    made.push(rows)
    made.push({name: table([20.25], k=[9], j=[9]) for name in "AB"})
    assert made.manifest.queries["wide"].chain == made.manifest.queries["narrow"].chain
    A, B = (pa.concat_tables([rows[n], table([20.25], k=[9], j=[9])]) for n in "AB")
    for query, where, size in (("wide", "TRUE", 20), ("narrow", "A.j > 2", 5)):
        alive = f"epoch_us(A.ts) >= {20.25 - size} * 1e6 AND epoch_us(B.ts) >= {20.25 - size} * 1e6"
        sql = f"SELECT count(*) FROM A, B WHERE A.k = B.k AND {where} AND {alive}"
        assert living(made, query).rows(frozenset("AB")).value == duckdb.query(sql).fetchall()[0][0]
    assert A.num_rows == B.num_rows == 82


def test_the_lanes_of_a_job_are_sampled_together() -> None:
    made = engine("AB", lanes=3)
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    made.push({name: table([i / 10 for i in range(60)], k=[i % 6 for i in range(60)]) for name in "AB"})
    assert living(made, "q").rows(frozenset("AB")).value == 600


def test_an_estimate_takes_what_is_kept_from_the_plan_and_the_rest_from_samples() -> None:
    made = engine("ABC")
    sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.j = C.j AND A.j < C.k WINDOW 10 SECONDS"
    made.add_query("q", sql, plan="((A B) C)")
    random = np.random.default_rng(8)
    for at in range(10):
        times = [at + i / 20 for i in range(20)]
        made.push({n: table(times, **{c: random.integers(0, 6, 20).tolist() for c in "kj"}) for n in "ABC"})
    seen = observed(made.manifest, "q")
    samples = samples_of(made.manifest, seen, made._store)
    found = Estimate(statistics(made.manifest, seen, samples=samples))
    assert found.rows(frozenset("AB")).origin is Origin.COUNTED
    assert found.rows(frozenset("BC")).origin is Origin.SAMPLED
    first, last = found.joinings(plan("((B C) A)"))
    assert first.output.rows == pytest.approx(samples.rows(frozenset("BC")).value, rel=0.1)
    assert last.pairs == pytest.approx(samples.compared(frozenset("BC"), frozenset("A")), rel=0.1)
    assert last.output.rows < 0.7 * last.pairs, "half of the pairs of equal key fail the other predicate"


def test_a_query_that_has_seen_nothing_has_empty_samples() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    made.push()
    assert living(made, "q").rows(frozenset("AB")).value == 0
