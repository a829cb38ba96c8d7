"""Passive and aggressive adjustment of a running ring (Wang §14.2): what moves, and how long until a node is in use.

Time is counted in event time of the rows, not by a clock.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.node_spread import NodeSpread
from tests.unit.building import SECOND

SHARE = 0.75
"""A node is in use once it has this share of the mean node's rows."""


def latency(scheme: str, way: str, window: int) -> tuple[float, int]:
    """Let a fourth node come to three; return the part of a window until it is in use, and the chunks that left.

    Those are the chunks that some node lists no more after the step of the change.
    """
    made, rng = ms.Engine(seed=3), np.random.default_rng(14)
    for name in "AB":
        made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", f"SELECT A.x FROM A, B WHERE A.x * B.x > 60 WINDOW {window} SECONDS", spread=scheme, nodes=3)

    def step(second: int) -> NodeSpread:
        ts = pa.array(np.sort(rng.integers(second * SECOND, (second + 1) * SECOND, 24)), pa.timestamp("us"))
        made.push({name: pa.table({"x": rng.integers(0, 9, 24), "ts": ts}) for name in "AB"})
        spread = made.manifest.queries["q"].nodes
        assert spread is not None
        return spread

    for second in range(2 * window):
        before = at_nodes(step(second), made)
    made.spread("q", scheme, nodes=4, relocation=way)
    spread = step(2 * window)
    left = sum(len(chunks - at_nodes(spread, made).get(node, set())) for node, chunks in before.items())
    for after in range(1, 2 * window):
        if spread.work[3].rows >= SHARE * np.mean([node.rows for node in spread.work]):
            return after / window, left
        spread = step(2 * window + after)
    raise AssertionError("the fourth node is never in use")


def at_nodes(spread: NodeSpread, made: ms.Engine) -> dict[int, set[str]]:
    """The chunks that each node lists."""
    lanes = {lane.number: state for lane, state in made.manifest.lane_states.items() if lane.group.startswith("nodes-")}
    return {n: {ref.name for listing in state.states.values() for ref in listing.chunks} for n, state in lanes.items()}


@pytest.mark.parametrize("scheme", ["psp", "psp_i", "psp_d"])
def test_an_aggressive_adjustment_takes_a_step_and_a_passive_one_longer_the_longer_the_window(scheme: str) -> None:
    """A passive one moves no row: what leaves a node is what any step purges, and the new node waits for new rows."""
    seconds = {}
    for window in (12, 24):
        at_once, left = latency(scheme, "aggressive", window)
        waited, purged = latency(scheme, "passive", window)
        assert at_once == 1 / window and left > 2 * purged
        seconds[window] = waited * window
    assert 1 < seconds[12] < seconds[24]
