"""Glances: between reviews, whether queries whose plan is settled still do what they did when it was reviewed.

OM (002 §4.3) estimates the selectivity of a join anew only once what it is made of has moved past a threshold. Here the
threshold is on what the running plan does in a second, which is counted anyway, so that a stream which stays as it is
costs a comparison of three numbers, and no sample is drawn of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.step.reviewing.affordable import is_affordable, is_saved_for
from midstream.step.reviewing.plan_group import PlanGroup
from midstream.step.reviewing.turns import timely

SECOND = 1_000_000

MOVED = 0.5
"""OM's threshold: by a greater share of the greater one two paces differ."""

CHANCE = 3.0
"""So many standard deviations of what is counted are left to chance."""

REMEMBERED = 8
"""So many paces are compared with: a stream that bursts now and then is reviewed at its first bursts only."""

Pace = tuple[float, ...]
"""Rows that probed, comparisons, and rows made, in a second of event time."""


def glance(manifest: Manifest) -> Manifest:
    """The manifest after a look at the settled queries whose time it is; those whose figures moved are not settled."""
    seen = {one.lead: _after(manifest, one, now) for one, now in _settled(manifest)}
    return replace(manifest, optimizations={**manifest.optimizations, **seen}) if seen else manifest


def unsettled(manifest: Manifest) -> Manifest:
    """The manifest with no query settled: users have said something, and policies must know."""
    found = {name: replace(kept, settled=False) for name, kept in manifest.optimizations.items() if kept.settled}
    return replace(manifest, optimizations={**manifest.optimizations, **found}) if found else manifest


def seen_at(kept: Optimization, counted: Counters, now: int) -> Optimization:
    """What is kept after a review: the pace since the last look is one that the next ones are compared with."""
    return replace(kept, seen=now, counted=counted, paces=_known(kept, _pace(kept, counted, now)))


def seen_anew(kept: Optimization) -> Optimization:
    """What is kept where a query is new, or moves to another plan: its pace is learnt from the next look on."""
    return replace(kept, seen=None, paces=())


def is_new(kept: Optimization, counted: Counters, now: int) -> bool:
    """Whether the pace since the last look differs from all at which the plan was found to be the right one.

    As long as rows of before are alive, a review tells but half of what has changed: the next look is one, too.
    """
    pace = _pace(kept, counted, now)
    return pace is not None and _is_new(kept, pace, now)


def has_moved(before: Pace, pace: Pace, seconds: float) -> bool:
    """Whether what was counted in so many seconds differs by more than the threshold and chance.

    >>> has_moved((100, 1000, 50), (100, 1200, 50), 10), has_moved((100, 1000, 50), (100, 3000, 50), 10)
    (False, True)
    """
    pairs = ((one * seconds, other * seconds) for one, other in zip(before, pace, strict=True))
    return any(abs(one - other) > MOVED * (most := max(one, other)) + CHANCE * sqrt(most) for one, other in pairs)


def _settled(manifest: Manifest) -> Iterator[tuple[PlanGroup, int]]:
    return ((one, now) for one, now in timely(manifest) if one.kept.settled)


def _after(manifest: Manifest, one: PlanGroup, now: int) -> Optimization:
    kept, entry = one.kept, manifest.queries[one.lead]
    until = kept.settled_until
    if until is not None and now >= until:
        return replace(kept, settled=False, price=0.0)
    if is_affordable(manifest, one):
        return kept
    pace = _pace(kept, entry.counters, now)
    if pace is None:
        return replace(kept, seen=now, counted=entry.counters)
    if _is_new(kept, pace, now) and is_saved_for(manifest, one):
        return replace(kept, settled=False, price=0.0)
    return replace(kept, seen=now, counted=entry.counters, paces=kept.paces or (pace,))


def _is_new(kept: Optimization, pace: Pace, now: int) -> bool:
    seconds = (now - (kept.seen or 0)) / SECOND
    return bool(kept.paces) and all(has_moved(known, pace, seconds) for known in kept.paces)


def _known(kept: Optimization, pace: Pace | None) -> tuple[Pace, ...]:
    """The paces at which the plan was found to be the right one, the newest first: those need no other look."""
    return kept.paces if pace is None else (pace, *kept.paces)[:REMEMBERED]


def _pace(kept: Optimization, counted: Counters, now: int) -> Pace | None:
    """What was done in a second since the last look; None where that was no time, or counting began anew."""
    before, begun = kept.counted, kept.seen
    if begun is None or now <= begun or counted.rows_in < before.rows_in:
        return None
    seconds = (now - begun) / SECOND
    return (
        (counted.rows_in - before.rows_in) / seconds,
        (counted.comparisons - before.comparisons) / seconds,
        (counted.rows_out - before.rows_out) / seconds,
    )
