"""One step of a query that is spread over nodes, one node after the other in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from midstream.language.evaluate import all_hold
from midstream.model.counters import Counters
from midstream.model.errors import fault_located
from midstream.model.ids import LaneId, OperatorId, StateId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.model.node_spread import NodeSpread, NodeWork
from midstream.operators.multi_join import MultiJoinOperator
from midstream.operators.source import SourceOperator
from midstream.ring.columns import Copies
from midstream.ring.discovery import spreading
from midstream.ring.joined_rows import JoinedRows, times
from midstream.ring.ring_course import RingCourse
from midstream.ring.ring_node import NodeRows, RingNode
from midstream.runtime.result_operator import Answer, with_time
from midstream.runtime.watermark import BEGINNING, StepClock
from midstream.state.base_state import TIME
from midstream.state.keys import Mask, stable_order
from midstream.state.store.base import ChunkStore
from midstream.step.held import with_held
from midstream.step.lane_step import LaneOutput
from midstream.step.plan_step import StepPlan
from midstream.step.query_unit import QueryUnit
from midstream.step.spreading.deploy import deployment_of, grown, keys_of, rounds_of
from midstream.step.spreading.listed import Homes, Keeping, Listed, Nodes
from midstream.step.spreading.taken_over import Chunks, Former, former, kept_columns

AtNodes = Mapping[int, Listed]
"""A chunk at each node where some of its rows are at home."""

Groups = list[tuple[Nodes, pa.RecordBatch]]
"""The step's rows of a source, by the nodes at which they are at home."""


@dataclass(frozen=True)
class SpreadOutput:
    """What the nodes of a query give back, and how it is spread from then on."""

    lanes: Mapping[LaneId, LaneOutput]
    spread: NodeSpread


def spread_step(
    before: Manifest, plan: StepPlan, name: str, rows: Mapping[str, pa.RecordBatch], clock: StepClock, store: ChunkStore
) -> SpreadOutput:
    """Do a step of a query that is spread over nodes; `before` is the manifest that the step began from."""
    spread = plan.spread_queries[name]
    (unit,) = plan.program(plan.manifest.queries[name].group).units
    assert isinstance(unit, QueryUnit)
    with fault_located(unit.place):
        left = None
        if spread.since == clock.step:
            left = former(before, name, unit, store, f"{LaneId(unit.group, 0)}/{clock.step:08d}-taken")
        return SpreadStep(plan.manifest, unit, spread, rows, clock, store, left).run()


class SpreadStep:
    """A step of one query: rows go to the nodes where they are at home, partial results visit nodes hop by hop.

    The nodes are the lanes of the query's group; only base rows are kept, listed at the nodes.
    """

    def __init__(
        self,
        manifest: Manifest,
        unit: QueryUnit,
        spread: NodeSpread,
        rows: Mapping[str, pa.RecordBatch],
        clock: StepClock,
        store: ChunkStore,
        left: Former | None = None,
    ) -> None:
        """A step; `left` is what the query leaves elsewhere where it is spread so from this step on."""
        self._manifest, self._unit, self._clock, self._store = manifest, unit, clock, store
        self._box = unit.box(unit.plan)
        (root,) = self._box.roots
        assert isinstance(root, MultiJoinOperator)
        self._join, self._sources = root, {route.source.spec.label: route.source for route in root.routes}
        self._before, self._begun = spread, spread.since == clock.step
        self._counters: dict[OperatorId, Counters] = {}
        self._lanes = {i: manifest.lane_states.get(self._lane(i), LaneState()) for i in range(self._lanes_before())}
        self._chunks = {label: self._listed_chunks(source) for label, source in self._sources.items()}
        self._held: tuple[pa.RecordBatch, ...] = ()
        if left is not None:
            self._chunks, self._held = dict(left.chunks), left.held
        self._new = {label: self._selected(source, rows) for label, source in self._sources.items()}
        self._bound = max(min(clock.before[stream] for stream in unit.streams), BEGINNING + 1)
        self._deploy()

    def run(self) -> SpreadOutput:
        """Do the step."""
        old = {label: self._at_nodes(label) for label in self._sources}
        new = {label: self._homes(label).groups(batch) for label, batch in self._new.items()}
        nodes = [
            RingNode(
                number,
                {label: [at[number].rows for at in chunks if number in at] for label, chunks in old.items()},
                {label: [NodeRows(rows) for at, rows in groups if number in at] for label, groups in new.items()},
            )
            for number in range(self._spread.nodes)
        ]
        empty = {label: batch.slice(0, 0) for label, batch in self._new.items()}
        course = RingCourse(self._deployment, self._spreading, self._keys, self._join.routes, nodes, empty)
        results = course.run({label: self._started(label, batch) for label, batch in self._new.items()})
        states = self._states(old, new)
        moved = sum(self._moved(label, at) for label, chunks in old.items() for at in chunks)
        self._count_states(states, new)
        lanes = {self._lane(node.number): self._output(node, states[node.number]) for node in nodes}
        first = self._lane(0)
        answer = self._answer(results)
        lanes[first] = replace(
            lanes[first],
            results={self._unit.name: answer},
            rows_out={self._unit.name: len(answer.times)},
            counters={**lanes[first].counters, **self._counters},
        )
        return SpreadOutput(lanes, self._worked(nodes, lanes, course.sent, moved))

    # --- where rows are

    def _lane(self, number: int) -> LaneId:
        return LaneId(self._unit.group, number)

    def _lanes_before(self) -> int:
        numbers = [lane.number for lane in self._manifest.lane_states if lane.group == self._unit.group]
        return max(numbers, default=-1) + 1

    def _listed_chunks(self, source: SourceOperator) -> Chunks:
        """The chunks of a source at all nodes, each once."""
        listings = (lane.states.get(source.spec.id, StateListing()) for lane in self._lanes.values())
        refs = {ref.name: ref for listing in listings for ref in listing.chunks}
        types = self._manifest.streams[source.spec.stream].columns
        return {name: (ref, kept_columns(self._store.get(ref), source.spec, types)) for name, ref in refs.items()}

    def _selected(self, source: SourceOperator, rows: Mapping[str, pa.RecordBatch]) -> pa.RecordBatch:
        """The step's rows that the query reads of a source, with the columns that are kept."""
        arrived = rows[source.spec.input]
        chosen = arrived
        if source.selection:
            chosen = arrived.filter(pa.array(all_hold(source.selection, arrived)))
        tested = arrived.num_rows * source.filters
        self._count(source.id, Counters(rows_in=arrived.num_rows, predicates=tested, rows_out=chosen.num_rows))
        return chosen.select(sorted({TIME, *source.spec.columns}))

    def _deploy(self) -> None:
        """How the nodes lie in this step: slices grow, and the moments in flight are those of the step's rows."""
        unit, spread = self._unit, self._before
        new = {label: times(batch) for label, batch in self._new.items()}
        come = new
        if self._begun:
            old = {label: [times(batch) for _, batch in chunks.values()] for label, chunks in self._chunks.items()}
            come = {label: np.concatenate([*old[label], ts]) for label, ts in new.items()}
        self._spreading, self._keys = spreading(spread.scheme), keys_of(unit.query)
        known = [spread.moment, *(int(ts.max()) for ts in come.values() if len(ts))]
        newest = max((one for one in known if one is not None), default=None) if self._begun else spread.moment
        moments, self._parts = rounds_of(self._spreading, new, newest)
        self._spread = grown(unit.query, spread, come, self._bound, moments)
        self._deployment = deployment_of(unit.query, self._labelled(self._spread), self._manifest.seed, moments)

    def _labelled(self, spread: NodeSpread) -> NodeSpread:
        return replace(spread, master=self._unit.labels.get(spread.master, ""))

    def _homes(self, label: str) -> Homes:
        settled = "" if self._spreading.ages else f"{self._unit.name} {self._spread.since}"
        return Homes(self._spreading, self._deployment, self._keys, label, self._bound, settled)

    def _at_nodes(self, label: str) -> list[AtNodes]:
        """Each chunk of a source at the nodes where its rows are at home in this step; none that is dead."""
        homes = self._homes(label)
        found = (homes.listed(ref, batch) for ref, batch in self._chunks[label].values())
        return [at for at in found if at]

    def _moved(self, label: str, at: AtNodes) -> int:
        """How many rows of a chunk are at home at a node that they were not at before the step."""
        if not self._spreading.ages or self._begun:
            return 0
        moment = self._before.moment or 0
        before = replace(self._deployment, moments=(moment,))
        found = 0
        for node, one in at.items():
            homes = replace(self._homes(label), deployment=before).of(one.batch)
            was = _marked(homes, node, one.batch.num_rows)
            now = np.ones(one.batch.num_rows, np.bool_) if one.mask is None else one.mask
            found += int((now & ~was).sum())
        return found

    # --- what is on its way

    def _started(self, label: str, batch: pa.RecordBatch) -> JoinedRows:
        """New rows as the partial results that they begin."""
        moments = np.array(self._deployment.moments, np.int64)
        return JoinedRows({label: batch}, moments[np.searchsorted(self._parts, times(batch), "right")])

    def _answer(self, results: JoinedRows) -> Answer:
        """The answer, in order of time."""
        found = results.newest
        order = stable_order(found)
        ordered, ascending = results.take(order), found[order]
        shown = self._unit.result_operator
        columns = shown.values(with_time(ordered.read, ascending), len(ordered))
        return with_held(shown.answer(columns, ascending), self._held)

    # --- what is left behind

    def _states(self, old: Mapping[str, list[AtNodes]], new: Mapping[str, Groups]) -> list[LaneState]:
        """What each node keeps."""
        found: list[dict[StateId, StateListing]] = [{} for _ in range(self._spread.nodes)]
        for label, source in self._sources.items():
            name = f"{self._lane(0)}/{self._clock.step:08d}-{source.spec.id}"
            listings = Keeping(self._store, name, self._homes(label)).listings(old[label], new[label])
            for number, states in enumerate(found):
                states[source.spec.id] = listings.get(number, StateListing())
        box = dict(self._box.snapshot())
        return [LaneState(states, {self._unit.name: box}) for states in found]

    def _count(self, operator: OperatorId, counters: Counters) -> None:
        self._counters[operator] = self._counters.get(operator, Counters()) + counters

    def _count_states(self, states: list[LaneState], new: Mapping[str, Groups]) -> None:
        """Rows put into the state of each source and taken out of it, over all nodes: copies, where there are some."""
        for label, source in self._sources.items():
            before = sum(lane.states.get(source.spec.id, StateListing()).live for lane in self._lanes.values())
            arrived = sum(len(nodes) * rows.num_rows for nodes, rows in new[label])
            left = sum(state.states[source.spec.id].live for state in states) - arrived
            counters = Counters(inserted=arrived + max(left - before, 0), purged=max(before - left, 0))
            self._count(OperatorId.of_state(source.spec.id), counters)
        self._count(self._join.id, Counters(rows_in=sum(batch.num_rows for batch in self._new.values())))

    def _output(self, node: RingNode, state: LaneState) -> LaneOutput:
        counters = Counters(
            comparisons=node.comparisons, predicates=node.predicates, rows_out=node.rows_out, hops=node.visits
        )
        counted = {self._join.id: counters}
        if node.number == 0:
            counted[self._join.id] += self._counters.pop(self._join.id)
        uses = {self._unit.name: self._unit.requirements(self._box).counted}
        return LaneOutput(state, {}, counted, uses)

    def _worked(
        self, nodes: list[RingNode], lanes: Mapping[LaneId, LaneOutput], sent: list[int], moved: int
    ) -> NodeSpread:
        """The spread with what each node has done, since it began."""
        before = self._spread.work or (NodeWork(),) * len(nodes)
        work = tuple(
            NodeWork(
                sum(listing.live for listing in lanes[self._lane(node.number)].state.states.values()),
                done.comparisons + node.comparisons,
                done.visits + node.visits,
            )
            for node, done in zip(nodes, before, strict=True)
        )
        known = self._spread.sent or (0,) * len(sent)
        total = tuple(one + other for one, other in zip(known, sent, strict=True))
        return replace(self._spread, work=work, sent=total, moved=self._spread.moved + moved)


def _marked(copies: Copies, node: int, rows: int) -> Mask:
    found = np.zeros(rows, np.bool_)
    found[copies.row[copies.node == node]] = True
    return found
