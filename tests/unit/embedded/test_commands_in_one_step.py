"""Several commands before one push: as if each had had a step of its own."""

from __future__ import annotations

import pytest

from midstream.model.events import MigrationBegun
from tests.unit.building import both, engine, table

THREE = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 9 SECONDS"
TWO = "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.v <= B.v WINDOW 9 SECONDS"
ROWS = both("ABC", table([1, 2], k=[1, 2], j=[1, 2], v=[1.0, 2.0]))
LATER = both("ABC", table([3], k=[1], j=[3], v=[0.5]))


def test_a_query_may_be_migrated_before_it_has_begun() -> None:
    made = engine()
    made.add_query("q", THREE)
    made.migrate("q", "(A (B C))")
    assert made.push(ROWS)["q"].num_rows == 2
    assert made.push(LATER)["q"].num_rows == 7
    (lane,) = made.manifest.lane_states.values()
    assert lane.boxes["q"]["plan"] == made.explain("q", format="json")["plan"] == "(A (B C))"
    assert not [state for state in lane.states if state.startswith("A+B.")]


def test_a_query_added_migrated_and_dropped_never_was() -> None:
    made = engine()
    made.add_query("p", TWO)
    made.push(ROWS)
    made.add_query("q", THREE)
    made.migrate("q", "(A (B C))")
    made.drop_query("q")
    assert set(made.push(LATER)) == {"p"}
    assert not [event for event in made.events if isinstance(event, MigrationBegun)]


@pytest.mark.parametrize(
    ("old", "new"),
    [(THREE, TWO), (TWO, THREE), (TWO, "SELECT x.j FROM A x, C y WHERE x.v < y.v WINDOW 9 SECONDS"), (THREE, THREE)],
)
def test_a_name_may_be_given_to_another_query_at_once(old: str, new: str) -> None:
    """The new query begins with nothing, whatever the one of its name left."""
    made, fresh = engine(), engine()
    made.add_query("q", old)
    made.push(ROWS)
    made.drop_query("q")
    made.add_query("q", new)
    fresh.push(ROWS)
    fresh.add_query("q", new)
    assert made.push(LATER)["q"].to_pylist() == fresh.push(LATER)["q"].to_pylist()
    assert made.metrics()["queries"]["q"] == fresh.metrics()["queries"]["q"]


def test_a_new_query_of_an_old_name_has_its_own_plan() -> None:
    made = engine()
    made.add_query("q", THREE, plan="((A B) C)")
    made.push(ROWS)
    made.drop_query("q")
    made.add_query("q", THREE, plan="(A (B C))")
    made.push(LATER)
    assert [lane.boxes["q"]["plan"] for lane in made.manifest.lane_states.values()] == ["(A (B C))"]


def test_dropped_added_and_migrated_in_one_step() -> None:
    made = engine()
    made.add_query("q", THREE)
    made.push(ROWS)
    made.drop_query("q")
    made.add_query("q", TWO)
    made.migrate("q", "(B A)")
    assert made.push(LATER)["q"].to_pylist() == [{"a": 3, "b": 3}]


def test_rows_that_waited_for_the_old_query_are_not_given_to_the_new_one() -> None:
    """A query with a ROWS window that asks about instants keeps rows back until the watermark passes them."""
    counts = "SELECT COUNT(*) AS n FROM A [ROWS 5], B [ROWS 5] WHERE A.k = B.k EVERY 1 SECOND"
    made = engine()
    made.add_query("q", counts)
    made.push({"A": table([1], k=[1])})
    made.drop_query("q")
    made.add_query("q", counts)
    assert made.push({"B": table([1], k=[1])})["q"].num_rows == 0
    assert made.push(both("AB", table([9], k=[5])))["q"].num_rows == 0


def test_a_command_shows_before_its_step() -> None:
    made = engine()
    made.add_query("q", THREE)
    assert made.explain("q", format="json")["plan"] == "((A B) C)"
    assert made.metrics()["queries"]["q"]["rows_in"] == 0
    made.migrate("q", "(A (B C))")
    assert made.explain("q", format="json")["plan"] == "(A (B C))"
    made.drop_query("q")
    assert made.metrics()["queries"] == {}
