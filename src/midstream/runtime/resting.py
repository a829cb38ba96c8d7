"""What of a plan rests in a step that brings it nothing: states that are listed as before, without being read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateId
from midstream.model.manifest import StateListing
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
