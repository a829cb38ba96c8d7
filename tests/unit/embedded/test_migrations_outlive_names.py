"""The plan that queries share migrates on while the query that began it goes, or is written with other aliases."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import MigrationBegun, MigrationEnded

SCHEMA = "k BIGINT, ts TIMESTAMP"


def sql(a: str, b: str, seconds: int) -> str:
    """The join, with aliases and a window."""
    return f"SELECT {a}.k FROM A AS {a}, B AS {b} WHERE {a}.k = {b}.k WINDOW {seconds} SECONDS"


def rows(*seconds: int) -> pa.Table:
    """Rows of one key at these seconds."""
    return pa.table({"k": [1] * len(seconds), "ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us"))})


def sharing() -> ms.Engine:
    """Two queries that share a plan, one with aliases of its own."""
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, SCHEMA, timestamp="ts")
    engine.add_query("first", sql("x", "y", 20), plan="(x y)")
    engine.add_query("second", sql("A", "B", 20), plan="(A B)")
    engine.push({"A": rows(0, 1), "B": rows(0, 1)})
    return engine


def migrating() -> ms.Engine:
    """The same, with the plan under migration, begun by the first."""
    engine = sharing()
    engine.migrate("first", plan="[x: y | y: x]", strategy="gpt", together=True)
    engine.push({"A": rows(2), "B": rows(2)})
    assert engine.migration("first")
    return engine


def test_a_query_that_goes_leaves_its_migration_in_the_words_of_the_next() -> None:
    engine = migrating()
    engine.drop_query("first")
    assert engine.push({"A": rows(3)})["second"].num_rows == 3
    found = engine.migration("second")
    assert found and (found["old"], found["plan"]) == ("(A B)", "[A: B | B: A]")
    engine.migrate("second", plan="eddy(A B)", strategy="gpt")
    assert engine.push({"B": rows(4)})["second"].num_rows == 4


def test_a_text_with_other_aliases_has_its_migration_reported_by_them() -> None:
    engine = migrating()
    engine.change_query("first", sql("one", "other", 30))
    assert engine.push({"A": rows(3)})["first"].num_rows == 3
    found = engine.migration("first")
    assert found and (found["old"], found["plan"]) == ("(one other)", "[one: other | other: one]")
    engine.migrate("first", plan="eddy(one other)", strategy="gpt")
    assert engine.push({"B": rows(4)})["first"].num_rows == 4


def begun_and_ended(engine: ms.Engine) -> list[tuple[str, str, str]]:
    """Kind, query and plan of each migration's first and last event."""
    events = engine.events
    begun = [("begun", e.query, e.new) for e in events if isinstance(e, MigrationBegun)]
    return begun + [("ended", e.query, e.plan) for e in events if isinstance(e, MigrationEnded)]


def test_a_query_dropped_in_the_step_of_its_migration_leaves_it_to_the_next() -> None:
    engine = sharing()
    engine.migrate("first", plan="[x: y | y: x]", strategy="gpt", together=True)
    engine.drop_query("first")
    assert engine.push({"A": rows(3)})["second"].num_rows == 2
    found = engine.migration("second")
    assert found and (found["old"], found["plan"]) == ("(A B)", "[A: B | B: A]")
    for second in range(20, 80, 20):
        engine.push({"A": rows(second), "B": rows(second)})
    ahead = "[A: B | B: A]"
    assert begun_and_ended(engine) == [("begun", "second", ahead), ("ended", "second", ahead)]
    (event,) = (e for e in engine.events if isinstance(e, MigrationBegun))
    assert (event.old, event.tasks) == ("(A B)", (("(A B)", ahead),))


@pytest.mark.parametrize("at_once", [False, True], ids=["steps later", "in the same step"])
def test_a_query_that_leaves_a_plan_under_migration_leaves_the_migration_too(at_once: bool) -> None:
    engine = sharing()
    engine.migrate("first", plan="[x: y | y: x]", strategy="gpt", together=True)
    if not at_once:
        engine.push({"A": rows(2), "B": rows(2)})
    engine.migrate("first", plan="eddy(x y)", strategy="moving_state")
    results = engine.push({"A": rows(3)})
    assert results["first"].num_rows == results["second"].num_rows > 0
    ahead = "[A: B | B: A]"
    assert engine.migration("first") is None
    found = engine.migration("second")
    assert found and (found["old"], found["plan"], found["strategy"]) == ("(A B)", ahead, "gpt")
    for second in range(20, 80, 20):
        results = engine.push({"A": rows(second), "B": rows(second)})
        assert results["first"].num_rows == results["second"].num_rows > 0
    ended = [one for one in begun_and_ended(engine) if one[0] == "ended"]
    assert ended == [("ended", "first", "eddy(x y)"), ("ended", "second", ahead)]
