"""Before a step: commands are taken or refused, and what each lane group runs is settled. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from midstream.commands.add_query import with_refused
from midstream.commands.base import apply
from midstream.logical.query import query_of
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import MidstreamError, fault_located
from midstream.model.events import CommandRefused, Event
from midstream.model.frozen import revised
from midstream.model.ids import CounterKey
from midstream.model.lane_choice import StepTiming
from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread
from midstream.review.carry_out import forget_paces, review
from midstream.review.lane_review import review_lanes
from midstream.review.selection_review import review_selections
from midstream.ring.lengthening import evened, lengthened
from midstream.ring.ring_members import spread_queries
from midstream.runtime.lane_key import is_single
from midstream.sharing.chains import united
from midstream.sharing.membership import settled
from midstream.sharing.recut import recut
from midstream.state.chunk_store import ChunkStore
from midstream.step.spreading.node_orders import order_nodes
from midstream.units.arrangement import Arrangement, arrangement_of, keep_arrangement
from midstream.units.draft import Draft, MigrationStart
from midstream.units.lane_load import timed
from midstream.units.program import Program, compile_program

Refuse = Callable[[Command, Manifest], str | None]
"""Returns why a host refuses a command after which the manifest would be as given; None if the step may take it."""


@dataclass(frozen=True)
class StepPlan:
    """A step about to run.

    `manifest` already has the commands' queries and lanes, and the step's own number; `lanes_before` is the number of
    shares that `manifest.lane_states` is still held in. `migrations` begin with this step.
    """

    manifest: Manifest
    lanes_before: int
    migrations: Mapping[str, tuple[MigrationStart, ...]]
    events: tuple[Event, ...]
    changed: bool = False
    _programs: dict[str, Program] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def arrangement(self) -> Arrangement:
        """What follows from the queries of the step alone."""
        return arrangement_of(self.manifest)

    def program(self, group: str) -> Program:
        """Return what the lanes of a group run."""
        # One that nothing begins in or has changed is that of the step before.
        programs = self._programs if self.changed or self.migrations else self.arrangement.programs
        if group not in programs:
            found = compile_program(self.manifest, group, self.migrations)
            programs[group] = replace(found, changed=True) if self.changed else found
        return programs[group]

    def groups(self) -> tuple[str, ...]:
        """List the lane groups in use, sorted."""
        return self.arrangement.groups

    def lane_groups(self, level: int) -> list[str]:
        """List the groups of a level whose queries are not spread over nodes, sorted."""
        return [group for group in self.groups_at(level) if group in self.arrangement.in_lanes]

    def groups_at(self, level: int) -> tuple[str, ...]:
        """List the groups of a level, sorted, whether their queries are in lanes or spread over nodes."""
        arrangement = self.arrangement
        if not arrangement.level_of:
            return () if level else arrangement.groups
        return tuple([group for group in arrangement.groups if arrangement.level_of.get(group, 0) == level])

    def lanes(self, group: str) -> int:
        """Count the lanes of a group, those that are held as one counted once."""
        return lanes_of(group, self.manifest.shares)

    @cached_property
    def spread_queries(self) -> Mapping[str, NodeSpread]:
        """The queries that are spread over nodes; of those that share them, one group, the first."""
        return spread_queries(self.manifest)

    def spread_at(self, level: int) -> list[str]:
        """List the queries of a level that are spread over nodes."""
        queries, arrangement = self.manifest.queries, self.arrangement
        if not arrangement.some_spread:
            return []
        return [name for name in self.spread_queries if arrangement.level_of.get(queries[name].group, 0) == level]

    @property
    def needs_watermarks(self) -> bool:
        """Whether a query is evaluated at instants or feeds an operator: lanes must know the watermarks after."""
        queries = [query_of(e) for e in self.manifest.queries.values() if not e.shares]
        operated = any(e.operator is not None for e in self.manifest.queries.values())
        return operated or not all(query.plain for query in queries)


def lanes_of(group: str, lanes: int) -> int:
    """Count the lanes of a group when the job has `lanes`."""
    return 1 if is_single(group) else lanes


def plan_step(
    manifest: Manifest,
    commands: Sequence[Command],
    chunks: ChunkStore | None = None,
    timing: StepTiming | None = None,
    refuse: Refuse | None = None,
    exceeded: Mapping[CounterKey, int] | None = None,
) -> StepPlan:
    """Take the commands in order; one that cannot be done becomes a `CommandRefused` event and changes nothing.

    A host may `refuse` one that could be done. With the `chunks` of the manifest the optimizer reviews plans and lanes
    after that, as far as it is allowed to, and rings get other lengths. Without them nothing is decided by counters, so
    that the next command is checked on what it will find. `timing` is what the host has measured: lanes are decided on
    by it from the next step on. If an attempt at the step was broken off, `exceeded` has the rows that inner joins were
    about to make in it.
    """
    step = manifest.step + 1
    begun = revised(united(manifest), step=step, pending=(), still=False)
    draft = Draft(keep_arrangement(manifest, begun), chunks=chunks)
    for command in commands:
        attempt, reason = draft.copy(), None
        try:
            with fault_located(partial("command {}".format, command.kind)):
                apply(command, attempt)
        except MidstreamError as error:
            reason = str(error)
        else:
            reason = None if refuse is None else refuse(command, attempt.manifest)
        if reason is None:
            draft = attempt
        else:
            draft.events.append(CommandRefused(step, encode(command), reason))
            draft.manifest = with_refused(draft.manifest, command, step, reason)
    if commands:
        draft.manifest = forget_paces(draft.manifest)
    if chunks is not None:
        draft = review(draft, chunks, exceeded)
        review_selections(draft)
        review_lanes(draft, manifest.lanes)
    current = timed(with_shares(draft.manifest, timing), manifest.shares, timing)
    if draft.reworded:
        current = settled(current, [demand for entry in current.queries.values() for demand in entry.demands.values()])
    changed = draft.changed or current.chains.keys() != manifest.chains.keys()
    current = recut(current, draft.events, changed=changed)
    if chunks is not None:
        current = order_nodes(evened(lengthened(current, draft.events)))
    return StepPlan(
        keep_arrangement(manifest, current), manifest.shares, draft.migrations, tuple(draft.events), changed
    )


MOST_APART = 8
"""So many lanes are each held by themselves, however few threads there are."""


# A lane that is a step of its own costs its part of the fixed work and lists chunks of its own. That pays where lanes
# run side by side; lanes that would only run one after the other in a thread are held as one. Rows keep what they are
# dealt by, so that shares are spread anew as lanes are.
def held_in(lanes: int, threads: int) -> int:
    """Compute the number of shares that so many lanes are held in by so many threads. 0 holds each lane by itself.

    >>> held_in(8, threads=1), held_in(256, threads=4), held_in(16, threads=32)
    (0, 4, 0)
    """
    return threads if lanes > max(MOST_APART, threads) else 0


def with_shares(manifest: Manifest, timing: StepTiming | None) -> Manifest:
    """Hold the lanes of a manifest as suits a host. They stay as they were where it does not say how many threads it
    has."""
    threads = manifest.held_in if timing is None or timing.threads is None else timing.threads
    found = held_in(manifest.lanes, threads) if threads else 0
    return manifest if found == manifest.held_in else replace(manifest, held_in=found)
