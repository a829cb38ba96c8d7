"""What a step touches in a lane. All else stays as it is listed, and is not read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateId
from midstream.model.manifest import LaneState, StateListing
from midstream.model.window import Clock
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class RestingStates:
    """What of a plan may rest in a step that brings it nothing.

    `specs` are those of its states; `lineages` has the digest of the lineage of each that can be listed as before, as
    long as none of its rows dies, without being read; `nothing` is what operators and states then count.
    """

    specs: Mapping[StateId, StateSpec | RowsSpec]
    lineages: Mapping[StateId, str]
    nothing: Mapping[OperatorId, Counters]

    def as_before(
        self,
        listings: Mapping[StateId, StateListing],
        bounds: Mapping[StateId, Mapping[Clock, int]],
        changed: Collection[StateId],
    ) -> dict[StateId, StateListing]:
        """Collect the listings of states that have not `changed` in a step, and of which no row has died."""
        found = {}
        for id, lineage in self.lineages.items():
            if id in changed or id not in listings or listings[id].lineage != lineage:
                continue
            ends, own = listings[id].ends, bounds[id]
            for clock in own:
                if clock in ends and ends[clock] < own[clock]:
                    break
            else:
                found[id] = listings[id]
        return found


class DirtySet:
    """Decides from the inputs that bring rows what a step touches in a lane: units, operators and states.

    1. A unit whose inputs are silent, and whose states are empty, is not run: `leave_out`.
    2. If all plans that run may rest, an operator that is brought nothing is not asked: `rest`, `rests`.
    3. Then a state that no row reached, and of which no row has died, is listed as before: `resting`.

    """

    # Apart from it stay what is decided before there is a lane (`Manifest.still`, and a batch on Spark without a
    # partition), `Unit.nothing`, which is an answer and no decision, and the event time of idle streams.

    def __init__(self, before: LaneState, inputs: Mapping[str, pa.RecordBatch]) -> None:
        """Begin with the state of a lane before the step, and the inputs that it is given."""
        self._before = before
        self.silent = {name for name, rows in inputs.items() if not rows.num_rows}
        """The inputs without rows."""
        self.rests = False
        """Whether operators that are brought nothing leave their states alone."""
        self.resting: Sequence[RestingStates] = ()
        self._boxes: set[str] = set()
        self._states: set[StateId] = set()

    def feed(self, name: str, rows: pa.RecordBatch) -> None:
        """Take in an input that the lane makes itself."""
        if not rows.num_rows:
            self.silent.add(name)

    def is_empty(self, states: Set[StateId]) -> bool:
        """Return whether all these states are listed, and hold nothing."""
        return self._before.states.keys() >= states and self._holding.isdisjoint(states)

    @cached_property
    def _holding(self) -> set[StateId]:
        return {id for id, listing in self._before.states.items() if listing.chunks}

    def leave_out(self, unit: str, states: Iterable[StateId]) -> None:
        """Leave a unit as it is, and its states unless another unit touches them."""
        self._boxes.add(unit)
        self._states.update(states)

    def rest(self, parts: Sequence[RestingStates], plans: int) -> None:
        """Let these parts of the plans that run rest, unless there are more plans: of one of them nothing may."""
        if len(parts) == plans:
            self.rests, self.resting = True, parts

    def together(self, states: Mapping[StateId, StateListing], boxes: Mapping[str, Mapping[str, object]]) -> LaneState:
        """Make the state of the lane after the step: what it touched, and what was left out.

        Return the state before if the step touched nothing.
        """
        before = self._before
        if not states and not boxes and self._boxes == before.boxes.keys() and self._states == before.states.keys():
            return before
        if not self.rests and not self._boxes:
            return LaneState(states, boxes)
        kept = {id: listing for id, listing in before.states.items() if id in self._states or id in states}
        left = {name: box for name, box in before.boxes.items() if name in self._boxes or name in boxes}
        return LaneState({**kept, **states}, {**left, **boxes})
