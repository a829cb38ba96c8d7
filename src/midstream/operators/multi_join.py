"""The multi-way join without intermediate state (M-Join: HybMig §2.3, Wang §11.1).

Each input has a probing order: its new rows visit the base states of the other sources one after the other, and what
they find goes on as it is. Changing an order costs nothing, because there is no state but the base rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from typing_extensions import override

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateId
from midstream.operators.join_condition import JoinCondition
from midstream.operators.match import keyed, match
from midstream.operators.source import SourceOperator
from midstream.runtime.distribution import Distribution
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.state.combinations import Combinations, concatenate, empty
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class Hop:
    """A visit to the base state of one source, along the join condition from everything visited before."""

    state: StateSpec
    on: JoinCondition


@dataclass(frozen=True)
class Route:
    """The probing order of one input."""

    source: SourceOperator
    hops: tuple[Hop, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """The labels of the sources that are visited, one after the other."""
        return tuple(hop.state.labels[0] for hop in self.hops)


@dataclass(frozen=True)
class MultiJoinOperator(Operator):
    """Joins all sources by routes; a combination is made by the route of its last new source in the routes' order."""

    routes: tuple[Route, ...]

    @override
    @cached_property
    def id(self) -> OperatorId:
        orders = " | ".join(f"{r.source.spec.label}: {' '.join(h.state.id for h in r.hops)}" for r in self.routes)
        return OperatorId("multi_join", f"{self.signature.digest()} {orders}")

    @override
    def children(self) -> tuple[Operator, ...]:
        return tuple(route.source for route in self.routes)

    @override
    def distribution(self) -> Distribution:
        hops = [hop.on.distribution() for route in self.routes for hop in route.hops]
        return Distribution(tuple(m for d in hops for m in d.meetings), any(d.together for d in hops))

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        sources = {route.source.spec.label: route.source for route in self.routes}
        specs = {hop.state.id: hop.state for route in self.routes for hop in route.hops}
        return tuple((sources[spec.labels[0]], spec) for spec in specs.values())

    @override
    def advance(self, lane: Lane) -> Combinations:
        deltas = {r.source.spec.label: r.source.delta(lane) for r in self.routes}
        lane.count(self.id, Counters(rows_in=sum(map(len, deltas.values()))))
        new = {s.id: keyed(lane, self.rows, deltas[s.labels[0]], s.index, s.key) for _, s in self.states()}
        earlier: set[str] = set()
        found = []
        for route in self.routes:
            # New rows of earlier routes are met, new rows of later ones are not: each combination is made once.
            found.append(self._follow(lane, route, deltas[route.source.spec.label], new, earlier))
            earlier.add(route.source.spec.label)
        for state_id, run in new.items():
            lane.join(self._spec(state_id)).insert(run)
        return _ordered(found)

    @override
    def content(self, lane: Lane) -> Combinations:
        route = self.routes[0]
        return self._follow(lane, route, route.source.content(lane), {}, set())

    @override
    def in_view(self, view: View) -> Self:
        routes = tuple(
            replace(route, hops=tuple(replace(hop, state=view.state(hop.state)) for hop in route.hops))
            for route in self.routes
        )
        return replace(self, signature=self.signature.within(view.name), routes=routes)

    @override
    def describe(self) -> str:
        orders = " | ".join(
            f"{r.source.spec.label}: {' '.join(h.state.labels[0] for h in r.hops)}" for r in self.routes
        )
        return f"multi_join [{orders}]"

    def _follow(
        self, lane: Lane, route: Route, start: Combinations, new: dict[StateId, SortedRun], met: set[str]
    ) -> Combinations:
        so_far = start
        for hop in route.hops:
            if not len(so_far):
                return empty(self._labels(), start.valid_from)
            probe = keyed(lane, self.rows, so_far, hop.on.index, hop.on.left_key)
            lane.count(self.id, Counters(hops=len(so_far)))
            runs = list(lane.join(hop.state).old)
            if hop.state.labels[0] in met:
                runs.append(new[hop.state.id])
            found = [match(lane, self.rows, self.id, hop.on, probe, run) for run in runs]
            so_far = concatenate(found) if found else empty((*so_far.labels, *hop.state.labels), so_far.valid_from)
        return so_far

    def _labels(self) -> tuple[str, ...]:
        return tuple(r.source.spec.label for r in self.routes)

    def _spec(self, state_id: StateId) -> StateSpec:
        return next(s for _, s in self.states() if s.id == state_id)


def _ordered(pieces: list[Combinations]) -> Combinations:
    """Return the pieces together, whatever order their sources were visited in."""
    first = pieces[0]
    return concatenate(
        [Combinations({label: p.refs[label] for label in first.refs}, p.valid_from, p.valid_to) for p in pieces]
    )
