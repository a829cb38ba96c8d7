"""What follows from the queries of a manifest is found once, and anew where they change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import midstream as ms
from midstream.units.arrangement import known_arrangement
from midstream.units.program import unit_of
from tests.unit.building import table

JOIN = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"


def engine() -> ms.Engine:
    made = ms.Engine(seed=1)
    for name in "ABC":
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", JOIN)
    for number in range(3):
        push(made, number)
    return made


def push(made: ms.Engine, number: int) -> int:
    """The push of this number; how many results it has in all."""
    return sum(rows.num_rows for rows in made.push({name: table([number], k=[1]) for name in "ABC"}).values())


def test_a_step_goes_by_the_arrangement_of_the_one_before_it() -> None:
    made = engine()
    before = known_arrangement(made.manifest)
    push(made, 3)
    assert before is not None and known_arrangement(made.manifest) is before


def test_the_second_step_of_a_query_runs_what_the_first_one_compiled() -> None:
    made = ms.Engine(seed=1)
    for name in "ABC":
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", JOIN)
    units = []
    for number in range(2):
        push(made, number)
        units.append(unit_of(made.manifest, "q"))
    assert units[0] is units[1]


CHANGES: dict[str, Callable[[ms.Engine], object]] = {
    "a query more": lambda made: made.add_query("p", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS"),
    "a query less": lambda made: made.drop_query("q"),
    "another text": lambda made: made.change_query("q", JOIN.replace("5", "3")),
    "another stream": lambda made: made.create_stream("D", "k BIGINT, ts TIMESTAMP", timestamp="ts"),
    "a query that reads answers": lambda made: made.add_query("p", "SELECT q.k FROM q WHERE q.k > 0"),
    "another plan": lambda made: made.migrate("q", "(A (B C))", "moving_state"),
    "another scheme": lambda made: made.reshare("mem_opt"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_arrangement_is_found_where_queries_or_streams_change(change: str) -> None:
    made, same = engine(), engine()
    before = known_arrangement(made.manifest)
    for one in (made, same):
        CHANGES[change](one)
    for number in range(3, 8):
        same.manifest.__dict__.pop("_arrangement", None)
        assert push(made, number) == push(same, number)
        assert made.manifest == same.manifest
    assert known_arrangement(made.manifest) is not before
