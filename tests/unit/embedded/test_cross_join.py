"""A join without a condition is done, and told: most who write one forgot something."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import CrossJoinBegun

ASKED = "SELECT A.k FROM A, B, C WHERE {} WINDOW 5 SECONDS"


def engine(where: str) -> ms.Engine:
    made = ms.Engine()
    for name in ("A", "B", "C"):
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", ASKED.format(where))
    made.push({})
    return made


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("TRUE", (("A",), ("B",), ("C",))),
        ("A.k = C.k AND B.k > 1", (("A", "C"), ("B",))),
        ("B.k < C.k", (("A",), ("B", "C"))),
    ],
)
def test_it_is_told(where: str, groups: tuple[tuple[str, ...], ...]) -> None:
    made = engine(where)
    assert [e.groups for e in made.events if isinstance(e, CrossJoinBegun)] == [groups]
    assert made.explain("q", format="json")["cross_join"] == [list(group) for group in groups]
    assert "warning a cross join: no condition ties A" in made.explain("q")


@pytest.mark.parametrize("where", ["A.k = B.k AND B.k = C.k", "A.k + B.k = C.k", "A.k < B.k AND A.k > C.k"])
def test_a_join_with_conditions_is_none(where: str) -> None:
    made = engine(where)
    assert not any(isinstance(e, CrossJoinBegun) for e in made.events)
    assert "cross_join" not in made.explain("q", format="json") and "warning" not in made.explain("q")
