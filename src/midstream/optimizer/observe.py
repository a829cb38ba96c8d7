"""Live figures of a query, read from a manifest: what its states hold and what its operators counted. Pure.

Counters grow as long as an operator runs, states turn over with the window: so selectivities are taken from the sizes
of states where there is one, and from counters only where the output is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf

from midstream.logical.query import BandPredicate, EquiPredicate, Query
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey, StateId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.model.window import EVENT_TIME, SECOND, Window
from midstream.operators.window_join import WindowJoin
from midstream.optimizer.statistics import (
    DEFAULT_SPEED,
    Condition,
    JoinStatistics,
    Sampled,
    Sources,
    SourceStatistics,
    Statistics,
)
from midstream.plan.key_classes import key_classes
from midstream.runtime.operator import Operator
from midstream.state.lineage import BEFORE
from midstream.state.specs import RowsSpec


@dataclass(frozen=True)
class Observed:
    """A running query as an observer sees it.

    `labels` has for each of the user's aliases the label in signatures, `group` names its lanes, `rows` has its base
    rows by label; `operators` are those of its plan, and of the plans it is on its way from.
    """

    name: str
    group: str
    query: Query
    labels: Mapping[str, str]
    rows: Mapping[str, RowsSpec]
    operators: tuple[Operator, ...]


def statistics(
    manifest: Manifest, observed: Observed, speed: float = DEFAULT_SPEED, samples: Sampled | None = None
) -> Statistics:
    """Gather the figures of a running query, by the user's aliases; `speed` is the host's, in comparisons a second.

    With `samples` (`samples_of`), which say more of any join than the counters of those that run, `joins` are left out.
    """
    found = Gathering(manifest, observed)
    return replace(found.statistics(() if samples else found.joins()), speed=speed, samples=samples)


@dataclass(frozen=True)
class Gathering:
    """One query of a manifest, looked at from all sides; labels are translated to aliases on the way out."""

    manifest: Manifest
    observed: Observed

    def joins(self) -> tuple[JoinStatistics, ...]:
        """Gather what the operators counted."""
        return tuple(join for operator in self._operators for join in self._joins(operator))

    def statistics(self, joins: tuple[JoinStatistics, ...]) -> Statistics:
        """Gather all other figures."""
        sources = {alias: self._source(label) for alias, label in self.observed.labels.items()}
        return Statistics(sources, self._conditions(), joins, self._states(sources), self._elapsed / self._steps)

    def _source(self, label: str) -> SourceStatistics:
        spec = self._rows[label]
        rate = self._recent[label] or self._arrived(spec) / self._elapsed
        lasts = _lasts(spec.window, rate)
        # A listing has what was alive as its step began, a step more than the next one will find.
        return SourceStatistics(rate, min(float(self._live(spec.id)), rate * lasts), lasts)

    def _conditions(self) -> tuple[Condition, ...]:
        keys = [
            Condition("hash", self._aliases(a for m in c.members for a in m.aliases()))
            for c in key_classes(self.observed.query)
        ]
        others = [
            Condition("band" if isinstance(p, BandPredicate) else "theta", self._aliases(p.aliases()))
            for p in self.observed.query.predicates
            if not isinstance(p, EquiPredicate)
        ]
        return (*keys, *others)

    def _joins(self, operator: Operator) -> Iterator[JoinStatistics]:
        counters = self._counters(operator)
        if not counters.comparisons and not counters.rows_in:
            return
        passed = counters.rows_out / counters.comparisons if counters.comparisons else 1.0
        if isinstance(operator, WindowJoin):
            left, right = self._aliases(operator.left_state.labels), self._aliases(operator.right_state.labels)
            yield JoinStatistics(left, right, self._matched(operator, counters, passed), passed)
        elif counters.hops:
            # Probing orders do not count hop by hop: every hop is taken to let through the same share.
            mean = sum(self._live(self._rows[label].id) for label in operator.labels) / len(operator.labels)
            share = min(counters.comparisons / (counters.hops * mean), 1.0) if mean else 1.0
            found = sorted(self._aliases(operator.labels))
            for at, one in enumerate(found):
                for other in found[at + 1 :]:
                    yield JoinStatistics(frozenset({one}), frozenset({other}), share, passed)

    def _matched(self, join: WindowJoin, counters: Counters, passed: float) -> float:
        # By what is alive, else by what was counted.
        left, right = self._held(join.left.labels), self._held(join.right.labels)
        together = self._held(join.labels)
        if together and left and right and passed:
            return min(together / (left * right * passed), 1.0)
        arrived = [self._counters(child).rows_out for child in (join.left, join.right)]
        if counters.rows_in > sum(arrived) and left and right:
            # What came in was made by joins of a plan before this one: it is taken to come from both sides alike.
            pairs = counters.rows_in * 2 * left * right / (left + right)
            return min((counters.comparisons + 0.5) / (pairs + 1), 1.0)
        ran = min(counters.rows_in / sum(arrived), 1.0) if sum(arrived) else 0.0
        # Every pair is met when its later row arrives, by all that is alive then; the first window saw less.
        pairs = ran * (arrived[0] * (right or 0) + arrived[1] * (left or 0)) - (left or 0) * (right or 0) * (ran >= 1.0)
        return min((counters.comparisons + 0.5) / (pairs + 1), 1.0) if pairs > 0 else 1.0

    def _states(self, sources: Mapping[str, SourceStatistics]) -> dict[Sources, float]:
        # Each source's rows of one step more have made combinations, though with no row that had died before.
        rows = {label: sources[alias].rows for alias, label in self.observed.labels.items()}
        longer = {label: self._live(self._rows[label].id) / one - 1 if one else 0.0 for label, one in rows.items()}
        found = self._intermediate.items()
        return {self._aliases(labels): n / (1 + fsum([longer[one] for one in labels])) for labels, n in found}

    @cached_property
    def _intermediate(self) -> Mapping[frozenset[str], int]:
        specs = {spec.id: spec for op in self._operators for _, spec in op.states() if len(spec.labels) > 1}
        return {frozenset(s.labels): self._live(s.id) for s in specs.values() if self._listings(s.id)}

    def _held(self, labels: frozenset[str]) -> int | None:
        if len(labels) == 1:
            return self._live(self._rows[next(iter(labels))].id)
        return self._intermediate.get(labels)

    @property
    def _rows(self) -> Mapping[str, RowsSpec]:
        return self.observed.rows

    @property
    def _operators(self) -> tuple[Operator, ...]:
        return self.observed.operators

    @cached_property
    def _elapsed(self) -> float:
        # By lifetimes where these are known; else a step counts as a second.
        known = [(self._arrived(spec), rate) for label, spec in self._rows.items() if (rate := self._recent[label])]
        return sum(rows for rows, _ in known) / sum(rate for _, rate in known) if known else float(self._steps)

    @property
    def _steps(self) -> int:
        return max(self.manifest.step - self.manifest.queries[self.observed.name].since, 1)

    @cached_property
    def _recent(self) -> Mapping[str, float | None]:
        return {label: self._recent_of(spec) for label, spec in self._rows.items()}

    def _recent_of(self, spec: RowsSpec) -> float | None:
        # None where lifetimes are not in time.
        if spec.window is None or spec.window.kind != "range":
            return None
        refs = [ref for listing in self._listings(spec.id) for ref in listing.chunks if EVENT_TIME in ref.lifetimes]
        # Rows outside every window and filter have ended before all time.
        ends = [end for ref in refs for end in ref.lifetimes[EVENT_TIME] if end != BEFORE]
        span = (max(ends) - min(ends)) / SECOND if ends else 0.0
        return sum(ref.rows for ref in refs) / span if span else None

    def _arrived(self, spec: RowsSpec) -> int:
        return sum(listing.next_row for listing in self._listings(spec.id))

    def _live(self, state_id: StateId) -> int:
        if state_id not in self._counted:
            self._counted[state_id] = sum(listing.live for listing in self._listings(state_id))
        return self._counted[state_id]

    @cached_property
    def _counted(self) -> dict[StateId, int]:
        # Of a join of many streams each source is looked up for every state above it.
        return {}

    def _listings(self, state_id: StateId) -> list[StateListing]:
        return [lane.states[state_id] for lane in self._lanes if state_id in lane.states]

    @cached_property
    def _lanes(self) -> list[LaneState]:
        return [state for lane, state in self.manifest.lane_states.items() if lane.group == self.observed.group]

    def _counters(self, operator: Operator) -> Counters:
        return self.manifest.operators.get(CounterKey(self.observed.group, operator.id), Counters())

    @cached_property
    def _back(self) -> Mapping[str, str]:
        return {label: alias for alias, label in self.observed.labels.items()}

    def _aliases(self, labels: Iterable[str]) -> Sources:
        return frozenset([self._back[label] for label in labels])


def _lasts(window: Window | None, rate: float) -> float:
    # In seconds.
    if window is None:
        return inf
    if window.kind == "range":
        return window.size / SECOND
    return window.size / rate if rate else 0.0
