"""A query that comes, or grows, in the step in which another goes that held rows for a slower stream."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import QueryAdded, QueryChanged

NARROW = "SELECT A.u AS a, B.u AS b FROM A [RANGE 5 SECONDS], B [RANGE 100 SECONDS] WHERE A.k = B.k"
WIDE = NARROW.replace("5 SECONDS", "30 SECONDS")


def rows(first: int, *seconds: int) -> pa.Table:
    """Rows of one key at these seconds, numbered from `first`."""
    numbers = list(range(first, first + len(seconds)))
    times = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us"))
    return pa.table({"k": [1] * len(seconds), "u": numbers, "ts": times})


@pytest.mark.parametrize("sharing", ["mem_opt", "pull_up"])
@pytest.mark.parametrize("order", ["come, go", "go, come", "grow, go", "go, grow"])
def test_it_answers_from_all_rows_that_it_is_said_to_see(sharing: str, order: str) -> None:
    engine = ms.Engine(sharing=sharing)
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, u BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("narrow", NARROW)
    engine.add_query("slow", "SELECT A.u AS a, C.u AS c FROM A, C WHERE A.k = C.k WINDOW 5 SECONDS")
    engine.push({"A": rows(0, *range(10)), "B": rows(100, 0), "C": rows(200, 0)})
    engine.push({"A": rows(10, *range(10, 21)), "B": rows(101, 20)})
    engine.push()
    for what in order.split(", "):
        if what == "come":
            engine.add_query("wide", WIDE)
        elif what == "grow":
            engine.change_query("narrow", WIDE)
        else:
            engine.drop_query("slow")
    found = engine.push({"B": rows(102, 22)})["wide" if "come" in order else "narrow"]
    event = next(event for event in reversed(engine.events) if isinstance(event, QueryAdded | QueryChanged))
    assert isinstance(event.sees, int)
    assert sorted(found["a"].to_pylist()) == [second for second in range(21) if second * 1_000_000 >= event.sees]
