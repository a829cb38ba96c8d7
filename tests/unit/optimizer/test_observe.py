"""What is read off a manifest: rates, windows, sizes and selectivities of a query that runs."""

from __future__ import annotations

import pytest
from pytest import approx

from midstream.model.manifest import Manifest
from midstream.optimizer import observe
from midstream.optimizer.statistics import Condition, Statistics
from midstream.units.program import observed
from tests.unit.building import engine, table
from tests.unit.migration.flows import advance, warm

RATES = {"A": 20.0, "B": 30.0, "C": 40.0}
KEYS = dict.fromkeys("ABC", 25)
CLASS = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS"
MIXED = """SELECT x.k FROM A [RANGE 5 SECONDS] x, B [RANGE 20 SECONDS] y, C [ROWS 100] z
    WHERE x.k = y.k AND y.j * z.k < 10 AND z.j - x.j < 3"""


def statistics(manifest: Manifest, name: str) -> Statistics:
    return observe.statistics(manifest, observed(manifest, name))


def sources(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_rates_and_rows_are_those_of_the_flow() -> None:
    found = statistics(warm(CLASS, "((A B) C)", RATES, KEYS, until=30).manifest, "q")
    for name, rate in RATES.items():
        assert found.sources[name].rate == approx(rate, rel=0.15)
        assert found.sources[name].rows == approx(rate * 10, rel=0.15)
        assert found.sources[name].window == 10
    assert found.window == 10
    assert found.step == approx(1.0, rel=0.1)


def test_the_rate_is_that_of_the_last_window() -> None:
    made = warm(CLASS, "((A B) C)", RATES, KEYS, until=15)
    advance(made, {name: 3 * rate for name, rate in RATES.items()}, KEYS, 15, 30)
    assert statistics(made.manifest, "q").sources["C"].rate == approx(120, rel=0.15)


def test_before_the_first_window_is_over_rows_are_those_that_arrived() -> None:
    found = statistics(warm(CLASS, "((A B) C)", RATES, KEYS, until=4).manifest, "q")
    assert found.sources["B"].rows == approx(120, rel=0.25)
    assert found.sources["B"].rate == approx(30, rel=0.25)


def test_selectivities_are_those_of_the_keys() -> None:
    """AB is kept, so its state tells; of the root only counters do."""
    found = statistics(warm(CLASS, "((A B) C)", RATES, KEYS, until=30).manifest, "q")
    shares = {(join.left, join.right): join.matched for join in found.joins}
    assert shares.keys() == {(sources("A"), sources("B")), (sources("A", "B"), sources("C"))}
    assert list(shares.values()) == [approx(1 / 25, rel=0.25)] * 2
    assert found.states == {sources("A", "B"): approx(200 * 300 / 25, rel=0.25)}


def test_a_changed_selectivity_shows_in_the_state_within_a_window() -> None:
    made = warm(CLASS, "((A B) C)", RATES, KEYS, until=30)
    advance(made, RATES, {**KEYS, "A": 250}, 30, 45)
    found = statistics(made.manifest, "q")
    (first, *_) = [join.matched for join in found.joins if join.left == sources("A")]
    assert first == approx(1 / 250, rel=0.4)


def test_conditions_windows_and_aliases_of_a_mixed_query() -> None:
    found = statistics(warm(MIXED, "((x y) z)", RATES, KEYS, until=30).manifest, "q")
    assert set(found.conditions) == {
        Condition("hash", sources("x", "y")),
        Condition("theta", sources("y", "z")),
        Condition("band", sources("x", "z")),
    }
    windows = {alias: source.window for alias, source in found.sources.items()}
    assert (windows["x"], windows["y"]) == (5, 20)
    assert windows["z"] == approx(100 / 40, rel=0.25), "a hundred rows at forty a second"
    assert found.sources["z"].rows == approx(100, rel=0.5)
    assert found.sources["z"].rate == approx(40, rel=0.25)


def test_where_only_rows_are_counted_a_step_is_a_second() -> None:
    sql = "SELECT A.k FROM A [ROWS 50], B [ROWS 50] WHERE A.k = B.k"
    found = statistics(warm(sql, "(A B)", {"A": 20.0, "B": 30.0}, KEYS, until=20, step=0.5).manifest, "q")
    assert found.sources["A"].rate == approx(10, rel=0.2), "rows a step"
    assert found.step == 1.0


def test_lanes_are_added_up() -> None:
    made = engine("AB", lanes=3)
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    for at in range(20):
        made.push({name: table([at + i / 10 for i in range(10)], k=[*range(10)]) for name in "AB"})
    found = statistics(made.manifest, "q")
    assert found.sources["A"].rows == approx(100, rel=0.1)
    assert found.sources["A"].rate == approx(10, rel=0.1)
    assert found.joins[0].matched == approx(1 / 10, rel=0.1)


def test_probing_orders_are_measured_as_a_whole() -> None:
    plan = "[A: B C | B: A C | C: A B]"
    found = statistics(warm(CLASS, plan, RATES, KEYS, until=30).manifest, "q")
    assert {(join.left, join.right) for join in found.joins} == {
        (sources("A"), sources("B")),
        (sources("A"), sources("C")),
        (sources("B"), sources("C")),
    }
    assert found.joins[0].matched == approx(1 / 25, rel=0.5)


def test_a_query_that_has_seen_nothing_has_no_figures_but_no_error_either() -> None:
    made = engine("ABC")
    made.add_query("q", CLASS)
    made.push()
    found = statistics(made.manifest, "q")
    assert [source.rate for source in found.sources.values()] == [0, 0, 0]
    assert found.joins == ()


@pytest.mark.parametrize("step", [0.25, 1.0, 10.0])
def test_a_state_has_what_is_alive_at_once_however_long_a_step_is(step: float) -> None:
    """A listing has a step's rows more, but no pair of rows that were never alive together."""
    rates = {"A": 40.0, "B": 60.0, "C": 40.0}
    sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS"
    made = warm(sql, "((A B) C)", rates, {"A": 20, "B": 20, "C": 2_000}, until=60, step=step)
    found = statistics(made.manifest, "q")
    pairs = found.sources["A"].rows * found.sources["B"].rows
    assert found.states == {sources("A", "B"): approx(pairs / 20, rel=0.1)}
