"""The levels of a step: the one loop that every host runs, over an executor that turns lane tasks into lane outputs.

Queries over pushed streams are of level 0; a query that reads the answers of queries of level n is of level n + 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from midstream.model.events import Event
from midstream.model.frozen import revised
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest, StreamProgress
from midstream.model.node_spread import NodeSpread
from midstream.model.schema import StreamSchema
from midstream.runtime.watermark import Seen, StepClock, ceilings, watermarks
from midstream.state.chunk_store import ChunkStore
from midstream.step.conclude import conclude, progress_after
from midstream.step.placement import validate
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.nodes_done import spread_on
from midstream.units.answers import AnswerTimes, answered
from midstream.units.lane_step import LaneOutput


@dataclass(frozen=True)
class LevelOutput:
    """What the lanes of one level give back.

    `spreads` says how queries over nodes are spread from then on. `seen` is what arrived of each pushed stream, if only
    the lanes of level 0 have counted it.
    """

    lanes: Mapping[LaneId, LaneOutput]
    spreads: Mapping[str, NodeSpread] = field(default_factory=dict)
    seen: Mapping[str, Seen] | None = None


class Executor(Protocol):
    """Turns the lane tasks of one level of one step into lane outputs, in any process.

    An executor serves one attempt at one step. It decides nothing: commands, watermarks and commits are not its own.
    """

    def arrive(self, clock: StepClock) -> Mapping[str, Seen] | None:
        """Count what the step brings of each stream; called first, with the marks before the step.

        Returns: None if only the lanes see the rows; then those of level 0 find the marks after the step themselves.
        """
        return None

    def run(self, level: int, clock: StepClock) -> LevelOutput:
        """Run the lanes of a level; called once for each level, in their order."""

    def answer(self, stream: StreamSchema, outputs: Mapping[LaneId, LaneOutput]) -> AnswerTimes:
        """Make what lanes have answered the rows of a stream that the levels from here on read."""


@dataclass(frozen=True)
class StepOutputs:
    """What all levels of a step give back; `progress` is that of the streams after it, if it is known, and `marks` are
    their watermarks then.
    """

    lanes: Mapping[LaneId, LaneOutput]
    seen: Mapping[str, Seen]
    spreads: Mapping[str, NodeSpread] = field(default_factory=dict)
    progress: Mapping[str, StreamProgress] | None = None
    marks: Mapping[str, int] | None = None


def run_levels(plan: StepPlan, executor: Executor) -> StepOutputs:
    """Run the levels of a step one after the other: what one answers, the next takes in."""
    manifest, streams = plan.manifest, plan.manifest.streams
    marks = watermarks(streams, manifest.progress)
    counts = dict.fromkeys(streams, 0) | {name: one.rows for name, one in manifest.progress.items()}
    clock = StepClock(manifest.step, marks, marks, counts, ceilings(streams, manifest.progress))
    arrived = executor.arrive(clock)
    seen, lanes, spreads = dict(arrived or {}), dict[LaneId, LaneOutput](), dict[str, NodeSpread]()
    progress = None if arrived is None else progress_after(plan, seen)
    for level, answering in enumerate(plan.arrangement.answering):
        if progress is not None:
            for stream in answering:
                times = executor.answer(stream, lanes)
                progress[stream.name], seen[stream.name] = answered(manifest, progress, stream, times, lanes)
            clock = revised(clock, after=watermarks(streams, progress))
        done = executor.run(level, clock)
        lanes.update(done.lanes)
        spreads.update(done.spreads)
        if done.seen is not None:
            seen = dict(done.seen)
            progress = progress_after(plan, seen)
            clock = revised(clock, after=watermarks(streams, progress))
    return StepOutputs(lanes, seen, spreads, progress, None if progress is None else clock.after)


def conclude_levels(
    before: Manifest, plan: StepPlan, outputs: StepOutputs, store: ChunkStore
) -> tuple[Manifest, tuple[Event, ...]]:
    """Return the manifest after a step and what happened in it. Raise if a chunk that it lists is not in the store."""
    concluded, events = conclude(before, plan, outputs.lanes, outputs.seen, outputs.progress, outputs.marks)
    concluded = spread_on(concluded, outputs.spreads)
    validate(before, concluded, store)
    return concluded, events
