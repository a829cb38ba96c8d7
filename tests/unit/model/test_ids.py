"""Ids are values: what is asked of them is asked of their fields; their text is for files and people."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.model.ids import CounterKey, LaneId, OperatorId, StateId
from midstream.model.window import Clock

GROUPS = st.from_regex(r"single|key-[0-9a-f]{12}(-[0-9]+)?", fullmatch=True)


@given(st.text(), st.integers(0))
def test_a_lane_is_read_again_whatever_its_group_is_called(group: str, number: int) -> None:
    lane = LaneId(group, number)
    assert LaneId.parse(str(lane)) == lane


@given(GROUPS, st.from_regex(r"[a-z_]+", fullmatch=True), st.text(), st.none() | st.integers(0))
def test_counters_are_read_again_whatever_the_operator_is_called(
    group: str, kind: str, name: str, slice: int | None
) -> None:
    key = CounterKey(group, OperatorId(kind, name, slice))
    again = CounterKey.parse(str(key))
    assert again == key
    assert (again.operator.kind, again.operator.name, again.operator.slice) == (kind, name, slice)
    assert pickle.loads(pickle.dumps(key.operator)).__dict__ == key.operator.__dict__


def test_the_work_in_a_slice_is_that_of_its_operator() -> None:
    whole = OperatorId("join", "A B 0123456789ab")
    assert whole.in_slice(5_000_000) == OperatorId.parse("slice 5000000 of join A B 0123456789ab")
    assert whole.in_slice(5) != whole != whole.in_slice(6)
    assert StateId("A+B", "b2", "scan").counted.kind == "state"


def test_texts_are_those_of_checkpoints_written_before() -> None:
    assert str(LaneId("key-0123456789ab", 12)) == "key-0123456789ab.12"
    assert [str(Clock()), str(Clock("A"))] == ["ts", "rows:A"]
    assert str(CounterKey("single", OperatorId("join", "A B 0123456789ab"))) == "single join A B 0123456789ab"


@given(st.none() | st.text())
def test_a_clock_is_read_again_whatever_its_stream_is_called(stream: str | None) -> None:
    clock = Clock(stream)
    for again in (Clock.parse(str(clock)), pickle.loads(pickle.dumps(clock))):
        assert (again, again.stream) == (clock, stream)


def test_what_is_no_clock_is_not_read() -> None:
    with pytest.raises(ValueError, match="no clock 'cows:A'"):
        Clock.parse("cows:A")


def test_lanes_stand_in_order_of_their_numbers() -> None:
    assert sorted([LaneId("k", 10), LaneId("k", 2), LaneId("a", 30)]) == [
        LaneId("a", 30),
        LaneId("k", 2),
        LaneId("k", 10),
    ]


def test_what_is_no_lane_is_not_read() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        LaneId.parse("single")
