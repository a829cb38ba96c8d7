"""Whose plan is reviewed in a step: fair, without a clock, and a bounded number, so that no step pays for thousands."""

from __future__ import annotations

from midstream.language.parse import parsed
from midstream.model.manifest import Manifest
from midstream.model.optimization import OptimizerSettings
from midstream.step.reviewing.affordable import is_paid_for
from midstream.step.reviewing.plan_group import PlanGroup, plan_groups, without_choice

DAY = 86_400_000_000
"""Microseconds."""

MOST_REVIEWS = 4
"""So many plans at most are reviewed in a step."""

MOST_SUBSETS = 5_000
"""So many sets of streams at most are weighed in a step; a single review may need more."""


def clock(manifest: Manifest) -> int | None:
    """The greatest event time that a job has seen."""
    return max((p.greatest for p in manifest.progress.values() if p.greatest is not None), default=None)


def due(manifest: Manifest, now: int) -> list[PlanGroup]:
    """What is reviewed in this step: those that have waited longest, so that none starves."""
    waiting = [
        one
        for one in plan_groups(manifest)
        if _is_due(one, now) and _has_run(manifest, one) and is_paid_for(manifest, one)
    ]
    chosen, subsets = list[PlanGroup](), 0
    for one in sorted(waiting, key=lambda one: (one.kept.reviewed or 0, one.lead)):
        if len(chosen) == MOST_REVIEWS:
            break
        if without_choice(manifest, one.lead):
            continue
        subsets += 1 << len(parsed(manifest, manifest.queries[one.lead].sql).sources)
        if chosen and subsets > MOST_SUBSETS:
            break
        chosen.append(one)
    return chosen


def _is_due(one: PlanGroup, now: int) -> bool:
    if not one.is_reviewed or one.kept.reviewed is None:
        return False
    return now - one.kept.reviewed >= one.settings.review and not is_quiet(one.settings, now)


def _has_run(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether the queries have run and are not on their way to another plan."""
    entries = [manifest.queries[name] for name in one.queries]
    return entries[0].since < manifest.step and not any(entry.migrations for entry in entries)


def is_quiet(settings: OptimizerSettings, now: int) -> bool:
    """Whether a time of day is one of the quiet ones; an hour that ends before it begins ends the day after."""
    time = now % DAY
    return any(begin <= time < end if begin <= end else time >= begin or time < end for begin, end in settings.quiet)
