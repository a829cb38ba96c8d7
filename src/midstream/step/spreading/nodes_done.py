"""What the nodes of a query did in a step, as values that add up, and the manifest's part that is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import zip_longest
from typing import TypeVar

from midstream.model.counters import Counters
from midstream.model.ids import LaneId, OperatorId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, StateListing
from midstream.model.node_spread import NodeSpread, NodeWork, RouteWork
from midstream.units.lane_step import LaneOutput
from midstream.units.query_unit import QueryUnit, join_of

What = TypeVar("What")


@dataclass(frozen=True)
class KeptChunks:
    """Chunks of a source that are listed at these nodes after the step."""

    state: StateId
    nodes: tuple[int, ...]
    chunks: tuple[ChunkRef, ...]


@dataclass(frozen=True)
class NodeDone:
    """What one node did: the counters of the join, and the living rows of each source that it has after the step."""

    node: int
    counters: Counters = Counters()
    living: Mapping[StateId, int] = field(default_factory=dict)

    def __add__(self, other: NodeDone) -> NodeDone:
        return NodeDone(self.node, self.counters + other.counters, _added(self.living, other.living))


@dataclass(frozen=True)
class NodesDone:
    """What some nodes of a query did in a step, or in a part of it.

    `counters` are those that belong to no node, `arrived` counts by source the step's rows at all nodes, copies
    included, `sent` the visits of each hop and `bytes` the size of what visits, `routes` what was done for new rows of
    each label, by node if nodes may differ in their orders, `moved` the rows that are at home at another node than
    before, `rows_out` the results of each query, `rejected` its dead letters. `spread` is how the query is spread from
    then on, where it is known, `newest` the greatest event time.
    """

    nodes: tuple[NodeDone, ...] = ()
    kept: tuple[KeptChunks, ...] = ()
    counters: Mapping[OperatorId, Counters] = field(default_factory=dict)
    arrived: Mapping[StateId, int] = field(default_factory=dict)
    sent: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    routes: Mapping[str, tuple[RouteWork, ...]] = field(default_factory=dict)
    moved: int = 0
    rows_out: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    spread: NodeSpread | None = None
    newest: int | None = None

    @staticmethod
    def sum(many: Iterable[NodesDone]) -> NodesDone:
        """Add up what nodes did."""
        return reduce(NodesDone.__add__, many, NodesDone())

    def __add__(self, other: NodesDone) -> NodesDone:
        mine, theirs = ({one.node: one for one in done.nodes} for done in (self, other))
        both = mine | {node: mine[node] + one if node in mine else one for node, one in theirs.items()}
        return NodesDone(
            tuple(both[node] for node in sorted(both)),
            (*self.kept, *other.kept),
            {o: self.counters.get(o, Counters()) + other.counters.get(o, Counters())
             for o in [*self.counters, *(o for o in other.counters if o not in self.counters)]},
            _added(self.arrived, other.arrived),
            _by_hop(self.sent, other.sent),
            _by_hop(self.bytes, other.bytes),
            _routes(self.routes, other.routes),
            self.moved + other.moved,
            _added(self.rows_out, other.rows_out),
            _added(self.rejected, other.rejected),
            self.spread or other.spread,
            max((one for one in (self.newest, other.newest) if one is not None), default=None),
        )  # fmt: skip


@dataclass(frozen=True)
class SpreadOutput:
    """What the nodes of a query give back as lanes, and how it is spread from then on."""

    lanes: Mapping[LaneId, LaneOutput]
    spread: NodeSpread


def spread_output(manifest: Manifest, unit: QueryUnit, spread: NodeSpread, done: NodesDone) -> SpreadOutput:
    """Compute what a step that all nodes have done leaves: each node's state and counters, and what each did in all.

    `manifest` has the states from before the step, `spread` is how the query was spread until then. What belongs to no
    node is the first one's.
    """
    spread = done.spread or _moved_on(spread, done.newest)
    box, sources = unit.box(unit.plan), unit.binding.rows()
    (root,) = box.roots
    by_node = {one.node: one for one in done.nodes}
    uses = dict.fromkeys(unit.queries, unit.requirements(box).counted)
    lanes = {}
    for number in range(spread.reach):
        one = by_node.get(number, NodeDone(number))
        states = {spec.id: _listing(done.kept, one, spec.id) for spec in sources.values()}
        state = LaneState(states, {unit.name: dict(box.snapshot())})
        lanes[LaneId(unit.group, number)] = LaneOutput(state, {}, {root.id: one.counters}, uses)
    own = {root.id: Counters(), **done.counters, **_state_counters(manifest, unit, done, lanes.values())}
    own[root.id] += by_node.get(0, NodeDone(0)).counters
    came = [route.source for route in join_of(unit).routes]
    rows = {source.spec.label: done.counters.get(source.id, Counters()).rows_out for source in came}
    first = LaneId(unit.group, 0)
    lanes[first] = replace(lanes[first], counters=own, rows_out=done.rows_out, rejected=done.rejected)
    return SpreadOutput(lanes, _worked(spread, by_node, done, rows))


def spread_on(manifest: Manifest, spreads: Mapping[str, NodeSpread]) -> Manifest:
    """Set in the manifest after a step how its queries are spread from then on. Those that share nodes are alike."""
    if not spreads:
        return manifest
    groups: dict[str, list[str]] = {}
    for name, entry in manifest.queries.items():
        groups.setdefault(entry.group, []).append(name)
    entries = {}
    for name, spread in spreads.items():
        mates = groups[manifest.queries[name].group]
        known = replace(spread, alone=name) if len(mates) == 1 else spread
        entries.update({mate: replace(manifest.queries[mate], nodes=known) for mate in mates})
    return replace(manifest, queries={**manifest.queries, **entries})


def _moved_on(spread: NodeSpread, newest: int | None) -> NodeSpread:
    known = [one for one in (spread.moment, newest) if one is not None]
    return replace(spread, moment=max(known, default=0))


def _listing(kept: Iterable[KeptChunks], one: NodeDone, state: StateId) -> StateListing:
    chunks = [ref for found in kept if found.state == state and one.node in found.nodes for ref in found.chunks]
    return StateListing(tuple(chunks), one.living.get(state, 0))


def _state_counters(
    manifest: Manifest, unit: QueryUnit, done: NodesDone, lanes: Iterable[LaneOutput]
) -> dict[OperatorId, Counters]:
    # Over all nodes: copies, where there are some.
    former = [state for lane, state in manifest.lane_states.items() if lane.group == unit.group]
    after = [output.state for output in lanes]
    found = {}
    for spec in unit.binding.rows().values():
        before = sum(state.states.get(spec.id, StateListing()).live for state in former)
        arrived = done.arrived.get(spec.id, 0)
        left = sum(state.states[spec.id].live for state in after) - arrived
        counters = Counters(inserted=arrived + max(left - before, 0), purged=max(before - left, 0))
        found[spec.id.counted] = counters
    return found


def _worked(
    spread: NodeSpread, by_node: Mapping[int, NodeDone], done: NodesDone, rows: Mapping[str, int]
) -> NodeSpread:
    # Since the spread began.
    before = (*spread.work, *(NodeWork(),) * spread.reach)[: spread.reach]
    work = []
    for number, known in enumerate(before):
        one = by_node.get(number, NodeDone(number))
        compared, visited = known.comparisons + one.counters.comparisons, known.visits + one.counters.hops
        work.append(NodeWork(sum(one.living.values()), compared, visited))
    sent, size = _by_hop(spread.sent, done.sent), _by_hop(spread.bytes, done.bytes)
    routes = dict(spread.routes)
    for label, each in done.routes.items():
        whole = replace(reduce(RouteWork.__add__, each), rows=rows[label])
        routes[label] = routes[label] + whole if label in routes else whole
    by_origin = {label: each for label, each in done.routes.items() if len(each) > 1}
    return replace(
        spread, work=tuple(work), sent=sent, bytes=size, routes=routes, moved=spread.moved + done.moved,
        found=_routes(spread.found, by_origin),
    )  # fmt: skip


Routes = Mapping[str, tuple[RouteWork, ...]]


def _routes(one: Routes, other: Routes) -> dict[str, tuple[RouteWork, ...]]:
    return {
        **one,
        **{label: tuple(map(RouteWork.__add__, one[label], each)) if label in one else each
           for label, each in other.items()},
    }  # fmt: skip


def _by_hop(one: Iterable[int], other: Iterable[int]) -> tuple[int, ...]:
    return tuple(mine + theirs for mine, theirs in zip_longest(one, other, fillvalue=0))


def _added(one: Mapping[What, int], other: Mapping[What, int]) -> dict[What, int]:
    return {what: one.get(what, 0) + other.get(what, 0) for what in [*one, *(w for w in other if w not in one)]}
