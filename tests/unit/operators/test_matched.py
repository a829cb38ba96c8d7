"""What pairs of runs join to: few candidates and many alike, and codes that a join above takes over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from midstream.model.ids import StateKind
from midstream.operators import match, window_join
from midstream.operators.match import keyed
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations
from midstream.state.lineage import ARRIVED, LINEAGE
from tests.unit.building import both, engine, table

FROM = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE {on} WINDOW 9 SECONDS"
WHOLE, TEXT, OTHER = "A.k = B.k AND B.k = C.k", "A.s = B.s AND B.s = C.s", "A.k = B.k AND B.s = C.s"
MORE = " AND A.j <> C.j AND A.j <= B.j + 5"


def answers(on: str) -> tuple[list[dict[str, list[Any]]], dict[str, int]]:
    """What steps answer, in order, and the query's counters; keys come again and again, and some are NULL."""
    made, found = engine("ABC"), []
    made.add_query("q", FROM.format(on=on), plan="((A B) C)")
    random = np.random.default_rng(5)
    for number in range(12):
        keys = [None if key == 6 else key for key in random.integers(0, 7, 8).tolist()]
        words = [None if key is None else f"key {key}" for key in keys]
        rows = table([number] * 8, k=keys, s=words, j=random.integers(0, 9, 8).tolist())
        found.append(made.push(both("ABC", rows))["q"].to_pydict())
    assert any(step["a"] for step in found)
    return found, made.metrics()["queries"]["q"]


@pytest.mark.parametrize("on", [WHOLE, TEXT, OTHER, WHOLE + MORE, TEXT + MORE])
def test_few_candidates_give_what_many_do_in_the_same_order(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = answers(on)
    for handful in (0, 1):
        monkeypatch.setattr(match, "HANDFUL", handful)
        assert answers(on) == few


@pytest.mark.parametrize("on", [WHOLE, WHOLE + MORE, TEXT, OTHER])
def test_a_join_above_by_the_same_key_reads_no_key_of_what_it_is_given(
    on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, ...]] = []

    def noted(lane: Lane, rows: Any, combinations: Combinations, *by: Any) -> Any:
        read.append(combinations.labels if combinations.count else ())
        return keyed(lane, rows, combinations, *by)

    monkeypatch.setattr(window_join, "keyed", noted)
    answers(on)
    assert (("A", "B") in read) == (on == OTHER)


def test_columns_are_kept_in_the_order_of_their_names() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.v, B.j FROM A, B WHERE A.k = B.k AND A.j > 0 WINDOW 1 SECOND")
    for number in range(3):
        made.push(both("AB", table([number], k=[number], j=[1], v=[0.5])))
    states = [state for lane in made.manifest.lane_states.values() for state in lane.states.items()]
    chunks = [made._store.get(ref) for id, state in states if id.kind is StateKind.ROWS for ref in state.chunks]
    names = [chunk.schema.names for chunk in chunks]
    assert names and all(one == sorted(one) and {LINEAGE, ARRIVED, "k"} < {*one} for one in names)
