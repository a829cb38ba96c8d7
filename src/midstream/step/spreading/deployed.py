"""How the nodes of a query lie in a step, found from its rows; every node finds the same, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from midstream.model.ids import LaneId
from midstream.model.node_spread import NodeSpread
from midstream.operators.compile import compile_route
from midstream.operators.multi_join import Route
from midstream.ring.columns import Words
from midstream.ring.deploy import deployment_of, grown, keys_of, rounds_of, spreading_of
from midstream.ring.deployment import Deployment
from midstream.ring.joined_rows import JoinedRows, times
from midstream.ring.late_rows import LateRows
from midstream.ring.ring_course import Hops
from midstream.ring.shared_queries import SharedQueries
from midstream.ring.spreading import Spreading, spreading
from midstream.runtime.watermark import BEGINNING, StepClock
from midstream.step.spreading.listed import Homes
from midstream.step.spreading.taken_over import Former
from midstream.units.query_unit import QueryUnit, join_of
from midstream.units.ring_unit import RingUnit


@dataclass(frozen=True)
class StepSpread:
    """How a query is spread in a step: as it is from then on, the moments in flight, and from which event time on a
    row is of each moment but the first.
    """

    spread: NodeSpread
    moments: tuple[int, ...]
    parts: tuple[int, ...] = ()


def needs_arrivals(spread: NodeSpread) -> bool:
    """Return whether where rows are at home depends on the event times of the step's rows."""
    return spreading(spread.scheme).rounds > 1 or any(_moves_on(one) for one in spread.all)


def ages(spread: NodeSpread) -> bool:
    """Return whether rows are at home elsewhere as they grow older."""
    return any(spreading(one.scheme).ages for one in spread.all)


def stays(spread: NodeSpread) -> bool:
    """Return whether a partial result never leaves the node of its first visit; older rows may run out at others."""
    return spreading(spread.scheme).stays and spread.before is None


def _moves_on(spread: NodeSpread) -> bool:
    chosen = spreading(spread.scheme)
    return chosen.ages or chosen.keeps_slices


def as_before(spread: NodeSpread) -> StepSpread:
    """Return the spread in a step whose rows do not matter to it."""
    return StepSpread(spread, (spread.moment or 0,))


def begun_spread(unit: QueryUnit, spread: NodeSpread, left: Former, bound: int) -> NodeSpread:
    """Begin the spread of a query from this step on, with the rows it takes over but not the step's own."""
    former = {
        label: np.concatenate([np.zeros(0, np.int64), *(times(chunk.batch) for _, chunk in chunks.values())])
        for label, chunks in left.chunks.items()
    }
    known = [spread.moment, *(int(ts.max()) for ts in former.values() if len(ts))]
    newest = max((one for one in known if one is not None), default=None)
    return spread if newest is None else grown(unit.query, spread, former, bound, (newest,))


def step_spread(unit: QueryUnit, spread: NodeSpread, arrivals: Mapping[str, Words], bound: int) -> StepSpread:
    """Advance the spread once these rows have come. Slices grow, and the moments in flight are those of the step's
    rows."""
    moments, parts = rounds_of(spreading(spread.scheme), arrivals, spread.moment)
    return StepSpread(grown(unit.query, spread, arrivals, bound, moments), moments, tuple(parts.tolist()))


def bound_of(unit: QueryUnit, clock: StepClock) -> int:
    """Compute the least end of a lifetime that still matters."""
    return max(min(clock.before[stream] for stream in unit.streams), BEGINNING + 1)


@dataclass(frozen=True)
class Deployed:
    """The nodes of a query as they lie in a step; `bound` is the least end of a lifetime that still matters.

    If `by_node`, the step counts the work of each node's partial results.
    """

    unit: QueryUnit
    how: StepSpread
    seed: int
    bound: int
    by_node: bool = False

    @cached_property
    def spreading(self) -> Spreading:
        """The way it is spread."""
        return spreading_of(self.unit.query, self._named(self.how.spread), self.seed)

    @cached_property
    def deployment(self) -> Deployment:
        """The deployment over labels."""
        return deployment_of(self.unit.query, self._named(self.how.spread), self.seed, self.how.moments)

    @cached_property
    def hops(self) -> Hops:
        """The ways of partial results."""
        routes, orders, own = join_of(self.unit).routes, self.how.spread.orders, dict[tuple[int, int], Route]()
        for start, route in enumerate(routes):
            label, known = route.source.spec.label, {route.order: route}
            for node, order in enumerate(orders.get(label, ())):
                if order not in known:
                    known[order] = compile_route(self.unit.binding, label, order)
                if order != route.order:
                    own[start, node] = known[order]
        return Hops(self.deployment, self.spreading, keys_of(self.unit.query), routes, own, self.by_node)

    @property
    def shared(self) -> SharedQueries | None:
        """The queries that share the nodes; None where one has them for itself."""
        return self.unit.shared if isinstance(self.unit, RingUnit) else None

    def lane(self, node: int) -> LaneId:
        """Return the lane that is a node."""
        return LaneId(self.unit.group, node)

    def homes(self, label: str) -> Homes:
        """Find where the rows of a source are at home."""
        return Homes(self.spreading, self.deployment, self.hops.keys, label, self.bound, self._settled, self.shared)

    def started(self, label: str, batch: pa.RecordBatch) -> JoinedRows:
        """Turn new rows into the partial results that they begin."""
        moments, parts = np.array(self.how.moments, np.int64), np.array(self.how.parts, np.int64)
        return JoinedRows({label: LateRows.of(batch)}, moments[np.searchsorted(parts, times(batch), "right")])

    @property
    def _settled(self) -> str:
        """Return what the home of a row depends on; empty if this differs between steps or time lines."""
        spread, one = self.how.spread, self.deployment
        if any(_moves_on(each) for each in spread.all):
            return ""
        parts = [(each.scheme, each.nodes, each.master, each.segment, each.copies, each.begins) for each in spread.all]
        return f"{parts} {one.windows} {one.placed_by} {one.seed}"

    def _named(self, spread: NodeSpread) -> NodeSpread:
        # The master is named by label here.
        before = None if spread.before is None else self._named(spread.before)
        return replace(spread, master=self.unit.labels.get(spread.master, ""), before=before)
