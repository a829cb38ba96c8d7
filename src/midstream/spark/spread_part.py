"""A query that is spread over nodes, as the tasks of a step know it, and how its rows and partial results are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from midstream.model.codec import decode
from midstream.model.manifest import ChunkRef, Manifest
from midstream.model.node_spread import NodeSpread
from midstream.ring.deploy import without_run_out
from midstream.ring.joined_rows import JoinedRows, times
from midstream.runtime.watermark import StepClock
from midstream.spark.parcel import Parcel, packed, packed_visits, packed_words
from midstream.state.chunk_store import ChunkStore
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.arrivals import StepArrivals
from midstream.step.spreading.deployed import (
    Deployed,
    StepSpread,
    ages,
    as_before,
    begun_spread,
    bound_of,
    needs_arrivals,
    stays,
)
from midstream.step.spreading.node_orders import counts_by_node
from midstream.step.spreading.partition import listed
from midstream.step.spreading.spread_step import left_elsewhere, spread_unit
from midstream.units.query_unit import join_of

PLACING = 1
"""The stage in which rows get their homes where these depend on all rows of the step; there is none otherwise."""

FIRST_HOP = 2
"""The stage of the first hop; the others follow it."""

ROWS, VISITS, ARRIVALS, TIMES, SPREAD = "rows", "visits", "arrivals", "times", "spread"
"""Kinds of parcels: rows for their homes, partial results for a node, rows that wait for their homes, the event times
of a source, and how the query is spread in this step.
"""


@dataclass(frozen=True)
class SpreadPart:
    """A query that is spread over nodes in a step, with as many `hops`.

    Where it `stays`, no partial result leaves the partition of its first visit: all hops are one stage.

    Where it is spread so from this step on, `taken` are the chunks that it takes over, by source, and `held` those of
    results that were held back. `group` is its number among the groups of the exchange.
    """

    name: str
    group: int
    spread: NodeSpread
    hops: int
    stays: bool = False
    taken: Mapping[str, tuple[ChunkRef, ...]] | None = None
    held: tuple[ChunkRef, ...] = ()

    @property
    def is_placed(self) -> bool:
        """Whether there is a stage of its own in which rows get their homes."""
        return needs_arrivals(self.spread)

    @property
    def last(self) -> int:
        """Return the last stage."""
        return FIRST_HOP if self.stays else FIRST_HOP + self.hops - 1

    def hops_of(self, hop: int) -> range:
        """Return the hops that are done in the stage of a hop."""
        return range(hop, self.hops if self.stays else hop + 1)

    def deployed(self, plan: StepPlan, clock: StepClock, parcels: Sequence[Parcel] = ()) -> Deployed:
        """Deploy the nodes as they lie in the step, as one of the parcels says if the step's rows matter to it."""
        unit = spread_unit(plan, self.name)
        said = (decode(StepSpread, parcel.words[0]) for parcel in parcels if parcel.kind == SPREAD)
        how, by_node = next(said, as_before(self.spread)), counts_by_node(clock.step)
        return Deployed(unit, how, plan.manifest.seed, bound_of(unit, clock), by_node)

    def numbers(self, partition: int, partitions: int) -> range:
        """Return the nodes of a partition."""
        return range(partition, self.spread.reach, partitions)

    def chunks(self, manifest: Manifest, deployed: Deployed, label: str, nodes: range) -> Sequence[ChunkRef]:
        """Return the chunks of a source that may have rows at home at these nodes."""
        if self.taken is not None:
            return self.taken[label]
        return listed(manifest, deployed.unit, label, None if ages(self.spread) else nodes)

    def arrived(
        self, plan: StepPlan, clock: StepClock, rows: Mapping[str, pa.RecordBatch], partition: int, partitions: int
    ) -> tuple[StepArrivals, list[Parcel]]:
        """Select what the query reads of rows that a partition got, and what it sends of them."""
        arrivals = StepArrivals.selected(spread_unit(plan, self.name), rows, plan.manifest.step)
        own = {label: batch for label, batch in arrivals.rows.items() if batch.num_rows}
        if not self.is_placed:
            return arrivals, list(self.placed(self.deployed(plan, clock), own, partitions))
        sent = []
        for label, batch in own.items():
            told = packed_words(times(batch))
            sent += [Parcel(to, PLACING, TIMES, self.name, (label,), told) for to in range(partitions)]
            sent.append(Parcel(partition, PLACING, ARRIVALS, self.name, (label,), packed(batch)))
        return arrivals, sent

    def placed(self, deployed: Deployed, rows: Mapping[str, pa.RecordBatch], partitions: int) -> Iterator[Parcel]:
        """Send the step's rows home, and begin their way to the query's first hop."""
        for label, batch in rows.items():
            for nodes, own in deployed.homes(label).groups(batch):
                body = packed(own.batch)
                for partition in {node % partitions for node in nodes}:
                    yield Parcel(partition, FIRST_HOP, ROWS, self.name, (label, nodes), body)
        for start, route in enumerate(deployed.hops.routes):
            label = route.source.spec.label
            if label in rows:
                yield from self.sent(deployed, start, 0, deployed.started(label, rows[label]), partitions)

    def sent(self, deployed: Deployed, way: int, hop: int, joined: JoinedRows, partitions: int) -> Iterator[Parcel]:
        """Send partial results of a way to a hop."""
        if len(joined):
            for node, visits in deployed.hops.visits(way, hop, joined):
                body, parts = packed_visits(joined, visits)
                yield Parcel(node % partitions, FIRST_HOP + hop, VISITS, self.name, (way, node, parts), body)


def spread_parts(
    before: Manifest, plan: StepPlan, level: int, clock: StepClock, store: ChunkStore, partitions: int
) -> tuple[SpreadPart, ...]:
    """List the queries of a level that are spread over nodes; `before` is the manifest that the step began from."""
    groups = plan.groups_at(level)
    parts = (
        _part(before, plan, name, groups.index(plan.manifest.queries[name].group), clock, store)
        for name in sorted(plan.spread_at(level))
    )
    return tuple(replace(part, stays=partitions == 1 or stays(part.spread)) for part in parts)


def stages_of(parts: Sequence[SpreadPart]) -> tuple[int, ...]:
    """Return the stages of a step after the first, in order: one for each shuffle."""
    if not parts:
        return ()
    hops = range(FIRST_HOP, max(part.last for part in parts) + 1)
    return (*((PLACING,) if any(part.is_placed for part in parts) else ()), *hops)


def _part(before: Manifest, plan: StepPlan, name: str, group: int, clock: StepClock, store: ChunkStore) -> SpreadPart:
    unit = spread_unit(plan, name)
    spread = without_run_out(unit.query, plan.spread_queries[name], bound_of(unit, clock))
    part = SpreadPart(name, group, spread, len(join_of(unit).routes) - 1)
    left = left_elsewhere(before, plan, name, store)
    if left is None:
        return part
    taken = {label: tuple(ref for ref, _ in chunks.values()) for label, chunks in left.chunks.items()}
    spread = begun_spread(unit, spread, left, bound_of(unit, clock))
    return replace(part, spread=spread, taken=taken, held=tuple(ref for ref, _ in left.held))
