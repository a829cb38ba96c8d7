"""Glances: between reviews, whether queries whose plan is settled still do what they did when it was reviewed.

OM (002 §4.3) estimates the selectivity of a join anew only once what it is made of has moved past a threshold. Here the
threshold is on what the running plan does in a second, which is counted anyway, so that a stream which stays as it is
costs a comparison of some numbers, and no sample is drawn of it. What moves slowly passes no threshold: there a review
is made once as much seems to be lost for want of it as it takes, so that no more than twice that is (ski rental).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.model.window import SECOND
from midstream.step.program import compile_program
from midstream.step.reviewing.affordable import is_affordable, is_saved_for
from midstream.step.reviewing.paces import Done, Pace, has_moved, inner_joins, lost, pace_of
from midstream.step.reviewing.plan_group import PlanGroup
from midstream.step.unit import Unit

REMEMBERED = 8
"""So many paces are compared with: a stream that bursts now and then is reviewed at its first bursts only."""


def glance(manifest: Manifest, candidates: Iterable[tuple[PlanGroup, int]]) -> Manifest:
    """The manifest after a look at the settled queries whose time it is; those whose figures moved are not settled."""
    units, seen = Units(manifest), dict[str, Optimization]()
    for one, now in candidates:
        if one.kept.settled:
            seen[one.lead] = _after(manifest, one, now, units)
    return replace(manifest, optimizations={**manifest.optimizations, **seen}) if seen else manifest


def unsettled(manifest: Manifest) -> Manifest:
    """The manifest with no query settled: users have said something, and policies must know."""
    found = {name: replace(kept, settled=False) for name, kept in manifest.optimizations.items() if kept.settled}
    return replace(manifest, optimizations={**manifest.optimizations, **found}) if found else manifest


def seen_at(kept: Optimization, done: Done, now: int) -> Optimization:
    """What is kept after a review: the pace since the last look is one that the next ones are compared with."""
    return _looked(kept, done, now, _known(kept, pace_of(kept, done, now)), 0.0)


def seen_anew(kept: Optimization) -> Optimization:
    """What is kept where a query is new, or moves to another plan: its pace is learnt from the next look on."""
    return replace(kept, seen=None, paces=(), lost=0.0)


def is_new(kept: Optimization, done: Done, now: int) -> bool:
    """Whether the pace since the last look differs from all at which the plan was found to be the right one.

    As long as rows of before are alive, a review tells but half of what has changed: the next look is one, too.
    """
    pace = pace_of(kept, done, now)
    return pace is not None and _is_new(kept, pace, now)


@dataclass
class Units:
    """What runs the queries of a manifest, looked up once for all of a lane group."""

    manifest: Manifest
    _of_group: dict[str, Mapping[str, Unit]] = field(default_factory=dict)

    def done(self, one: PlanGroup) -> Done:
        """What the queries of a group have done that move together."""
        entry = self.manifest.queries[one.lead]
        if entry.group not in self._of_group:
            units = compile_program(self.manifest, entry.group, {}).units
            self._of_group[entry.group] = {unit.name: unit for unit in units}
        unit = self._of_group[entry.group][entry.unit(one.lead)]
        return Done.of(self.manifest, one.lead, inner_joins(unit))


def _after(manifest: Manifest, one: PlanGroup, now: int, units: Units) -> Optimization:
    kept = one.kept
    if kept.settled_until is not None and now >= kept.settled_until:
        return replace(kept, settled=False, price=0.0)
    if is_affordable(manifest, one):
        return kept
    # Between reviews a settled plan stays, and its joins with it; no more than their counters is looked up.
    done = units.done(one) if kept.seen is None else Done.of(manifest, one.lead, kept.joins)
    pace = pace_of(kept, done, now)
    if pace is None:
        return _looked(kept, done, now, kept.paces, kept.lost)
    loss = _lost(kept, pace, now)
    if (_is_new(kept, pace, now) or loss > kept.price) and is_saved_for(manifest, one):
        return replace(kept, settled=False, price=0.0)
    return _looked(kept, done, now, kept.paces or (pace,), loss)


def _looked(kept: Optimization, done: Done, now: int, paces: tuple[Pace, ...], loss: float) -> Optimization:
    return replace(kept, seen=now, counted=done.counted, joins=done.joins, made=done.made, paces=paces, lost=loss)


def _lost(kept: Optimization, pace: Pace, now: int) -> float:
    """What seems to be lost since the last review; what was not lost meanwhile makes up for it."""
    if kept.ahead is None or not kept.paces or len(kept.paces[0]) != len(pace):
        return kept.lost
    return max(kept.lost + lost(kept.paces[0], pace, kept.ahead) * (now - (kept.seen or 0)) / SECOND, 0.0)


def _is_new(kept: Optimization, pace: Pace, now: int) -> bool:
    seconds = (now - (kept.seen or 0)) / SECOND
    return bool(kept.paces) and all(has_moved(known, pace, seconds) for known in kept.paces)


def _known(kept: Optimization, pace: Pace | None) -> tuple[Pace, ...]:
    """The paces at which the plan was found to be the right one, the newest first: those need no other look."""
    return kept.paces if pace is None else (pace, *kept.paces)[:REMEMBERED]
