"""Queries whose windows are nested are answered as prefixes; others stand in sets of their own."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

from midstream.model.sharing import Demand
from midstream.runtime.result_operator import Answer
from midstream.sharing.chain_answers import merged, nested_windows, portions
from midstream.sharing.chain_results import Member


def member(name: str, a: int, b: int, where: str = "") -> Member:
    demands = {"A": Demand("A", where, a), "B": Demand("B", "", b)}
    return Member(name, 0, demands, 0, "all", 0, None, {}, cast(Any, None), "")


def names(members: list[Member]) -> list[list[list[str]]]:
    return [[[m.name for m in alike] for alike in nested.members] for nested in nested_windows(members)]


def test_windows_that_lie_within_one_another_are_one_set_in_order() -> None:
    assert names([member("wide", 9, 9), member("narrow", 2, 5), member("same", 9, 9)]) == [
        [["narrow"], ["wide", "same"]]
    ]


def test_windows_that_cross_are_two_sets() -> None:
    assert names([member("a", 2, 9), member("b", 9, 2), member("both", 9, 9)]) == [[["a"], ["both"]], [["b"]]]


def test_each_filter_has_a_set_of_its_own() -> None:
    assert names([member("all", 2, 2), member("some", 5, 5, "A.k > 1")]) == [[["all"]], [["some"]]]


def answer(*times: int) -> Answer:
    return Answer(pa.table({"n": pa.array(times, pa.int64())}), np.array(times, np.int64))


def test_portions_are_the_rows_at_their_places_and_equal_places_give_one_table() -> None:
    whole, few, none = answer(3, 4, 5, 6), np.array([0, 2]), np.zeros(0, np.int64)
    found = dict(portions(whole, {"few": few, "again": few, "all": np.arange(4), "none": none, "last": np.array([3])}))
    assert {name: one.table["n"].to_pylist() for name, one in found.items()} == {
        "few": [3, 5], "again": [3, 5], "all": [3, 4, 5, 6], "none": [], "last": [6],
    }  # fmt: skip
    assert {name: one.times.tolist() for name, one in found.items()}["few"] == [3, 5]
    assert found["few"] is found["again"] and found["all"] is whole


def test_answers_of_disjoint_joins_are_merged_in_order_of_time() -> None:
    found = merged([answer(1, 5), answer(2, 5, 9)])
    assert found.times.tolist() == found.table["n"].to_pylist() == [1, 2, 5, 5, 9]
