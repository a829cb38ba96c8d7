"""The contract of a lane, which operators and strategies are held to while checks are on."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from midstream.expr.expression import Column
from midstream.model.counters import Counters
from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState
from midstream.operators.window_join import WindowJoin
from midstream.plan.signature import Signature
from midstream.runtime import checks
from midstream.runtime.checks import ContractError
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.runtime.watermark import StepClock
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.memory_store import MemoryStore
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

ROWS = pa.record_batch({"_ts": pa.array([1, 2], pa.int64())})
KEY = (Column("A", "k", pa.int64()),)


def lane() -> Lane:
    return Lane(LaneId("single", 0), LaneState(), {"A": ROWS}, StepClock(3, counts={"A": 7}), MemoryStore())


def spec(index: str = "hash") -> StateSpec:
    made = Signature("scope", ("A",), ())
    return StateSpec(made, ("A",), ("ts",), index, KEY if index == "hash" else ())  # type: ignore[arg-type]


def run(codes: list[int] | None, labels: str = "A") -> SortedRun:
    words = np.arange(2)
    held = Combinations(dict.fromkeys(labels, words), {"ts": words}, {"ts": words + 5})
    return SortedRun(None if codes is None else np.array(codes), held)


def test_inputs_are_fed_before_the_lane_is_bound() -> None:
    opened = lane()
    opened.feed("A for q", ROWS, 4)
    assert opened.arrived_before("A for q") == 4
    assert opened.arrived_before("A") == 7
    opened.bound({})
    with pytest.raises(ContractError, match="before the lane is bound"):
        opened.feed("B for q", ROWS, 0)
    with pytest.raises(ContractError, match="before the lane is bound"):
        opened.queue("q.pending", ROWS, 1)
    with pytest.raises(ContractError, match="bound once"):
        opened.bound({})


def test_states_are_put_as_their_contract_says() -> None:
    opened = lane()
    opened.bound({})
    opened.put(JoinState(spec(), [run([3, 3])]))
    with pytest.raises(ContractError, match="codes ascend"):
        opened.put(JoinState(spec(), [run([4, 3])]))
    with pytest.raises(ContractError, match="of its own sources"):
        opened.put(JoinState(spec(), [run([3, 4], "B")]))
    with pytest.raises(ContractError, match="have codes"):
        opened.put(JoinState(spec(), [run(None)]))
    with pytest.raises(ContractError, match="not sorted"):
        opened.put(JoinState(spec("scan"), [run([3, 4])]))


def test_nothing_is_called_once_the_lane_is_finished() -> None:
    opened = lane()
    opened.bound({})
    opened.finish(set(), {})
    with pytest.raises(ContractError, match="finished once"):
        opened.finish(set(), {})
    with pytest.raises(ContractError, match="once the lane is finished"):
        opened.keep("eddy.table", ROWS)
    with pytest.raises(ContractError, match="once the lane is finished"):
        opened.count("join", Counters(rows_in=1))


def test_a_delta_is_computed_once_and_replayed_ones_stand_aside() -> None:
    opened, made = lane(), run([1, 2]).combinations
    join = Mock(spec=WindowJoin, id="join", advance=Mock(return_value=made))
    assert Operator.delta(join, opened) is made
    assert Operator.delta(join, opened) is made
    join.advance.assert_called_once_with(opened)
    with opened.replaying({"source": made}):
        assert opened.has_delta("source")
        assert not opened.has_delta("join")
    assert opened.has_delta("join")


def test_checks_can_be_left_off() -> None:
    token = checks._ON.set(False)
    try:
        opened = lane()
        opened.bound({})
        opened.put(JoinState(spec(), [run([4, 3])]))
        opened.feed("late", ROWS, 0)
    finally:
        checks._ON.reset(token)
