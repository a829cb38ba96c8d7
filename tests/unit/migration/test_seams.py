"""Where rooms meet: what only shows when a migration, a plan form and something third come together."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import MigrationBegun
from tests.unit.building import engine, table


def test_an_aggregate_over_an_eddy_is_rescaled() -> None:
    def run(*, rescaled: bool) -> list[object]:
        made, found = engine("AB"), []
        made.add_query(
            "q",
            "SELECT A.k, COUNT(*) AS n FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] "
            "WHERE A.k = B.k GROUP BY A.k EVERY 1 SECOND",
            plan="eddy(A B)",
        )
        for at in range(4):
            if rescaled and at == 2:
                made.rescale(lanes=2)
            rows = table([float(at), float(at)], k=[1, 2])
            found.append(sorted(map(str, made.push({"A": rows, "B": rows})["q"].to_pylist())))
        return found

    assert run(rescaled=True) == run(rescaled=False)


@pytest.mark.parametrize("objective", ["latency", "work", "memory"])
def test_auto_chooses_where_there_is_one_stream(objective: str) -> None:
    made: ms.Engine = engine("A")
    made.add_query("q", "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND")
    made.push({"A": table([1.0], k=[1])})
    made.migrate("q", "[A: ]", strategy="auto", objective=objective)
    made.push({"A": table([2.0], k=[1])})
    assert [event.query for event in made.events if isinstance(event, MigrationBegun)] == ["q"]
