"""Queries whose streams bring nothing: what each costs a step, counted, and that they miss nothing by resting."""

from __future__ import annotations

import cProfile
from pathlib import Path

import pytest

import midstream as ms
from midstream.model.manifest import LaneState
from tests.unit.building import both, engine, table

PAIRS = "SELECT A.k, B.j FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"


def waiting(count: int, filters: int) -> ms.Engine:
    """An engine with a query that gets rows and others that get none."""
    made = ms.Engine(threads=1)
    for name in "ABXY":
        made.create_stream(name, "j BIGINT, k BIGINT, s STRING, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", PAIRS)
    for number in range(count):
        made.add_query(
            f"w{number}", f"SELECT X.k FROM X, Y WHERE X.k = Y.k AND X.j > {number % filters} WINDOW 5 SECONDS"
        )
    return made


def calls(made: ms.Engine) -> int:
    """The Python calls of a push, those of threads included: there is one lane of a kind."""
    made._each = lambda do, items: [do(item) for item in items]  # type: ignore[method-assign]
    for step in range(4):
        made.push(both("AB", table([step], k=[step % 2])))
    profile = cProfile.Profile()
    profile.enable()
    for step in range(4, 8):
        made.push(both("AB", table([step], k=[step % 2])))
    profile.disable()
    made.close()
    return sum(entry.callcount for entry in profile.getstats()) // 4


@pytest.mark.parametrize(("filters", "most"), [(50, 30), (10_000, 50)], ids=["in a chain", "by themselves"])
def test_a_further_query_that_gets_nothing_costs_few_calls(filters: int, most: int) -> None:
    """Some 4 microseconds in a chain, and 15 by itself."""
    few, many = calls(waiting(100, filters)), calls(waiting(500, filters))
    assert (many - few) / 400 < most, (many - few) / 400


@pytest.fixture(params=[1, 3])
def rested(request: pytest.FixtureRequest) -> ms.Engine:
    """An engine with a query by itself that has been at rest for some steps."""
    made = engine("ABXY", sharing="off", lanes=request.param)
    made.add_query("q", PAIRS)
    made.add_query("w", "SELECT X.k, Y.j FROM X, Y WHERE X.k = Y.k WINDOW 5 SECONDS")
    for step in range(4):
        assert made.push(both("AB", table([step], k=[7])))["w"].num_rows == 0
    return made


def answer(made: ms.Engine, names: str, step: int) -> list[object]:
    rows: list[object] = made.push(both(names, table([step], k=[step % 2], j=[step])))["w"].to_pylist()
    return rows


def test_rows_wake_a_query(rested: ms.Engine) -> None:
    assert answer(rested, "XY", 4) == [{"k": 0, "j": 4}]
    assert answer(rested, "X", 5) == [] and answer(rested, "Y", 7) == [{"k": 1, "j": 7}]
    assert answer(rested, "AB", 30) == [] and answer(rested, "XY", 31) == [{"k": 1, "j": 31}]


def test_a_query_at_rest_is_moved_replaced_dropped_and_spread_anew(rested: ms.Engine) -> None:
    rested.migrate("w", "(Y X)", "moving_state")
    assert answer(rested, "AB", 4) == [] and rested.manifest.queries["w"].plan == "(Y X)"
    rested.rescale(2)
    assert answer(rested, "AB", 5) == [] and answer(rested, "XY", 6) == [{"k": 0, "j": 6}]
    rested.drop_query("w")
    rested.add_query("w", "SELECT X.k, Y.j FROM X, Y WHERE X.k = Y.k AND X.j > 7 WINDOW 5 SECONDS")
    assert answer(rested, "XY", 7) == [] and answer(rested, "XY", 9) == [{"k": 1, "j": 7}, {"k": 1, "j": 9}]
    rested.drop_query("w")
    rested.push(both("AB", table([10], k=[7])))
    held = {id for lane in rested.manifest.lane_states.values() for id in lane.states}
    assert held and not [id for id in held if id.owner.startswith(("X", "Y"))]


def test_what_rests_stays_listed_as_it_is(rested: ms.Engine, tmp_path: Path) -> None:
    before = rested.manifest
    rested.push(both("AB", table([4], k=[7])))
    after = rested.manifest
    for lane, state in before.lane_states.items():
        assert list(after.lane_states[lane].states) == list(state.states)
        assert list(after.lane_states[lane].boxes) == list(state.boxes)
        for id, listing in state.states.items():
            assert not id.owner.startswith("X") or after.lane_states[lane].states[id] is listing
    rested.save(tmp_path / "saved")
    assert answer(ms.Engine.load(tmp_path / "saved"), "XY", 5) == [{"k": 1, "j": 5}]


def test_one_rests_beside_another_in_a_lane() -> None:
    made = engine("ABXY", sharing="off")
    for name, one, other in (("q", "A", "B"), ("w", "X", "Y")):
        made.add_query(
            name, f"SELECT {one}.k, {other}.j FROM {one}, {other} WHERE {one}.k < {other}.k WINDOW 5 SECONDS"
        )
    for step in range(3):
        made.push(both("AB", table([step], k=[7])))
    ((_, before),) = made.manifest.lane_states.items()
    made.push(both("AB", table([3], k=[7])))
    ((_, after),) = made.manifest.lane_states.items()
    assert list(after.boxes) == list(before.boxes) == ["q", "w"] and list(after.states) == list(before.states)
    assert {id.owner for id, listing in before.states.items() if after.states[id] is listing} >= {"X", "Y"}
    assert made.push({"X": table([4], k=[1]), "Y": table([4], k=[2], j=[9])})["w"].to_pylist() == [{"k": 1, "j": 9}]


def test_a_lane_in_which_all_rests_is_the_same_value() -> None:
    made = engine("ABXY", sharing="off", lanes=2)
    made.add_query("w", "SELECT X.k FROM X, Y WHERE X.k = Y.k WINDOW 5 SECONDS")
    for step in range(3):
        made.push(both("AB", table([step], k=[7])))
    states: dict[object, LaneState] = dict(made.manifest.lane_states)
    made.push(both("AB", table([3], k=[7])))
    assert all(made.manifest.lane_states[lane] is state for lane, state in states.items())  # type: ignore[index]
