"""The plan that queries share migrates on while the query that began it goes, or is written with other aliases."""

from __future__ import annotations

import pyarrow as pa

import midstream as ms

SCHEMA = "k BIGINT, ts TIMESTAMP"


def sql(a: str, b: str, seconds: int) -> str:
    """The join, with aliases and a window."""
    return f"SELECT {a}.k FROM A AS {a}, B AS {b} WHERE {a}.k = {b}.k WINDOW {seconds} SECONDS"


def rows(*seconds: int) -> pa.Table:
    """Rows of one key at these seconds."""
    return pa.table({"k": [1] * len(seconds), "ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us"))})


def migrating() -> ms.Engine:
    """Two queries that share a plan under migration, begun by one with aliases of its own."""
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, SCHEMA, timestamp="ts")
    engine.add_query("first", sql("x", "y", 20), plan="(x y)")
    engine.add_query("second", sql("A", "B", 20), plan="(A B)")
    engine.push({"A": rows(0, 1), "B": rows(0, 1)})
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
