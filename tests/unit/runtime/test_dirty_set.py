"""What a dirty set leaves alone, and what it takes in, by the inputs that bring rows."""

from __future__ import annotations

import pyarrow as pa

from midstream.model.ids import StateId
from midstream.model.manifest import ChunkRef, LaneState, StateListing
from midstream.runtime.dirty_set import DirtySet, RestingStates

EMPTY, FULL, OTHER = (StateId(name, "0", "rows") for name in "ABC")
HELD = StateListing((ChunkRef("c", 1, 8, 0),), 1, 1)
BEFORE = LaneState({EMPTY: StateListing(), FULL: HELD}, {"p": {"box": "plan"}, "q": {"box": "plan"}})
NOTHING = pa.RecordBatch.from_pydict({})
ROWS = pa.RecordBatch.from_pydict({"k": [1]})


def dirty() -> DirtySet:
    return DirtySet(BEFORE, {"A": NOTHING, "B": ROWS})


def test_inputs_without_rows_are_silent_also_those_that_the_lane_feeds_itself() -> None:
    found = dirty()
    found.feed("C", NOTHING)
    found.feed("D", ROWS)
    assert found.silent == {"A", "C"}


def test_states_are_empty_if_all_are_listed_and_hold_nothing() -> None:
    assert dirty().is_empty({EMPTY})
    assert not dirty().is_empty({EMPTY, FULL}) and not dirty().is_empty({EMPTY, OTHER})


def test_nothing_rests_beside_a_plan_that_may_not() -> None:
    found, part = dirty(), RestingStates({}, {}, {})
    found.rest([part], plans=2)
    assert not found.rests and not found.resting
    found.rest([part], plans=1)
    assert found.rests and found.resting == [part]


def test_the_state_before_is_given_back_where_all_units_are_left_out() -> None:
    found = dirty()
    found.leave_out("p", {EMPTY})
    assert found.together({}, {}) is not BEFORE
    found.leave_out("q", {FULL})
    assert found.together({}, {}) is BEFORE


def test_what_is_left_out_stays_in_its_place_unless_others_touch_it() -> None:
    found, now = dirty(), StateListing((), 0, 2)
    found.leave_out("p", {EMPTY, FULL})
    after = found.together({OTHER: now, EMPTY: now}, {"q": {"box": "eddy"}})
    assert list(after.states.items()) == [(EMPTY, now), (FULL, HELD), (OTHER, now)]
    assert after.boxes == {"p": {"box": "plan"}, "q": {"box": "eddy"}}
    assert dirty().together({OTHER: now}, {}) == LaneState({OTHER: now}, {})
