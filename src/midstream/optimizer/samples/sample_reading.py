"""Samples read from the chunks that a manifest lists: read-only, deterministic, within a budget of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np

from midstream.expr.expression import Column, Expression
from midstream.expr.functions import asks_user
from midstream.logical.query import BandPredicate, EquiPredicate, Query
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.model.window import EVENT_TIME, Clock
from midstream.optimizer.observe import Observed
from midstream.optimizer.samples.drawn import ChunkSamples
from midstream.optimizer.samples.living import Living, OwnRows
from midstream.optimizer.samples.samples import Samples
from midstream.optimizer.samples.strata import Strata
from midstream.optimizer.samples.stratify import stratified
from midstream.plan.key_classes import KeyClass, key_classes
from midstream.plan.signature import relabel_query
from midstream.runtime.watermark import BEGINNING, watermarks
from midstream.state.chunk_store import ChunkStore
from midstream.state.specs import RowsSpec

BUDGET = 4096  # rows of one source that are sampled, about
PAIRS = 1 << 19  # pairs that a predicate which is neither an equality nor a band is evaluated on
ASKED = 1 << 14  # pairs that a user's predicate is asked about: it may take long
BEHIND = 0.02  # a smaller share of a source's rows outside of the others' windows makes no difference


def samples_of(
    manifest: Manifest,
    observed: Observed,
    store: ChunkStore,
    budget: int = BUDGET,
    seed: int = 0,
    memory: ChunkSamples | None = None,
) -> Samples:
    """Sample the rows alive after a manifest's step, by the user's aliases; about `budget` rows of a source.

    The same manifest and seed give the same samples. `memory` keeps what was drawn of chunks from one call to the next
    and changes no figure. Of rows that a chain's queries share, those count that this query sees.
    """
    memory = ChunkSamples() if memory is None else memory
    back = {label: alias for alias, label in observed.labels.items()}
    query = relabel_query(observed.query, back)
    reading = _Reading(manifest, observed, query, store, seed, memory)
    livings = {alias: reading.living(alias) for alias in sorted(observed.labels)}
    drawn = stratified(livings, _budgets(query, budget))
    return Samples(query, drawn, _are_windows_needed(drawn), seed)


@dataclass(frozen=True)
class _Reading:
    """What is sampled for a query, whose aliases are the user's."""

    manifest: Manifest
    observed: Observed
    query: Query
    store: ChunkStore
    seed: int
    memory: ChunkSamples

    @cached_property
    def classes(self) -> Sequence[KeyClass]:
        return key_classes(self.query)

    @cached_property
    def read(self) -> Sequence[Column]:
        # That a source's other expressions of a class equal its key is a condition as any other.
        doubled = [member for one in self.classes if one.doubles(self.query.aliases) for member in one.members]
        others = [p.expression for p in self.query.predicates if not isinstance(p, EquiPredicate)]
        return [column for expression in (*others, *doubled) for column in expression.columns()]

    @cached_property
    def keys(self) -> Mapping[str, Mapping[str, Expression]]:
        # By source the first of its expressions in each class, by the class's text.
        found: dict[str, dict[str, Expression]] = {alias: {} for alias in self.query.aliases}
        for one in self.classes:
            text = one.text()
            for member in one.members:
                for alias in member.aliases():
                    found[alias].setdefault(text, member)
        return found

    @cached_property
    def lanes(self) -> Sequence[tuple[str, LaneState]]:
        lanes = sorted(self.manifest.lane_states.items())
        return [(str(lane), state) for lane, state in lanes if lane.group == self.observed.group]

    @cached_property
    def bounds(self) -> Mapping[Clock, int]:
        return _bounds(self.manifest, self.observed)

    def living(self, alias: str) -> Living:
        spec = self.observed.rows[self.observed.labels[alias]]
        columns = tuple(sorted({column.name for column in self.read if column.alias == alias}))
        listings = [(lane, state.states.get(spec.id, StateListing())) for lane, state in self.lanes]
        own, keys = _own_rows(self.manifest, self.observed, spec, self.observed.labels[alias]), self.keys[alias]
        return Living(alias, spec, listings, keys, columns, self.bounds, own, self.store, self.seed, self.memory)


def _bounds(manifest: Manifest, observed: Observed) -> Mapping[Clock, int]:
    # The least end of lifetime that still matters, as the next step will have it.
    marks = watermarks(manifest.streams, manifest.progress)
    found = {EVENT_TIME: max(min(marks[stream] for stream in observed.query.children), BEGINNING + 1)}
    for stream in observed.query.counted:
        if stream in manifest.progress:
            found[Clock(stream)] = manifest.progress[stream].rows
    return found


def _own_rows(manifest: Manifest, observed: Observed, spec: RowsSpec, label: str) -> OwnRows | None:
    demand = manifest.queries[observed.name].demands.get(label)
    if spec.lineage is None or demand is None:
        return None
    # Where selections are pulled up, rows are kept whether they pass the query's filter or not, and joined so.
    filters = {one.text: one for one in spec.lineage.filters}
    return OwnRows(filters.get(demand.filter, spec.lineage.filters[0]).mask, demand.size)


def _budgets(query: Query, budget: int) -> Mapping[str, int]:
    found = dict.fromkeys(query.aliases, budget)
    for predicate in query.predicates:
        if not isinstance(predicate, EquiPredicate | BandPredicate):
            # Every pair must be looked at.
            most = isqrt(ASKED if asks_user(predicate.expression) else PAIRS)
            found |= {alias: min(found[alias], most) for alias in predicate.aliases()}
    return found


def _are_windows_needed(drawn: Strata) -> bool:
    # Rows may be alive that the newest rows of other sources no longer meet.
    samples = [source for source in drawn.sources.values() if len(source.weights)]
    for clock in samples[0].valid_from if samples else ():
        newest = max(int(source.valid_from[clock].max()) for source in samples)
        if any(float(np.mean(source.valid_to[clock] < newest)) > BEHIND for source in samples):
            return True
    return False
