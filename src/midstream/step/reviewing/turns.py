"""Whose plan is reviewed in a step: fair, without a clock, and a bounded number, so that no step pays for thousands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import is_

from midstream.language.parse import parsed
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, OptimizerSettings
from midstream.runtime.watermark import BEGINNING, LAST_TIME
from midstream.step.arrangement import known_arrangement
from midstream.step.reviewing.affordable import allowance, is_affordable, is_paid_for, price, subsets
from midstream.step.reviewing.group_settings import settings_of
from midstream.step.reviewing.plan_group import PlanGroup, group_of, moving_together, without_choice

DAY = 86_400_000_000
"""Microseconds."""

MOST_REVIEWS = 4
"""So many plans at most are reviewed in a step."""

MOST_SUBSETS = 5_000
"""So many sets of streams at most are weighed in a step; a single review may need more."""


def clock(manifest: Manifest) -> int | None:
    """The greatest event time that a job has seen."""
    return _greatest(manifest, manifest.progress)


def query_time(manifest: Manifest, query: str) -> int | None:
    """The greatest event time of the streams that a query reads: others, and their faults, do not matter to it."""
    return _greatest(manifest, [source.stream for source in parsed(manifest, manifest.queries[query].sql).sources])


def _greatest(manifest: Manifest, streams: Iterable[str]) -> int | None:
    progress = manifest.progress
    seen = [progress[name].greatest for name in streams if name in progress]
    return max([time for time in seen if time is not None], default=None)


def due(manifest: Manifest, candidates: Iterable[tuple[PlanGroup, int]]) -> list[tuple[PlanGroup, int]]:
    """What is reviewed in this step, and at which event time: those that have waited longest, so that none starves.

    These are chosen of what it was time to look at, but for what has been seen to do as it did.
    """
    seen = ((one, manifest.optimizations[one.lead], now) for one, now in candidates)
    still = [(replace(one, kept=kept), now) for one, kept, now in seen if _is_time(kept, one.settings, now)]
    waiting = [(one, now) for one, now in still if is_affordable(manifest, one)]
    if not waiting:
        return []
    efforts = (settings_of(manifest, names[0]).effort for names in moving_together(manifest))
    chosen, weighed, unpaid, most_unpaid = list[tuple[PlanGroup, int]](), 0, 0.0, allowance(efforts)
    for one, now in sorted(
        waiting, key=lambda pair: (pair[0].kept.reviewed_in, pair[0].kept.reviewed or 0, pair[0].lead)
    ):
        if len(chosen) == MOST_REVIEWS:
            break
        if without_choice(manifest, one.lead):
            continue
        streams = len(parsed(manifest, manifest.queries[one.lead].sql).sources)
        weighed += subsets(streams)
        if not one.kept.price or not is_paid_for(manifest, one):
            unpaid += max(one.kept.price, price(streams, 0))
        if chosen and (weighed > MOST_SUBSETS or unpaid > most_unpaid):
            break
        chosen.append((one, now))
    return chosen


def timely(manifest: Manifest) -> Iterator[tuple[PlanGroup, int]]:
    """What it is time to look at, with its event time; what its queries allow is settled only where it is time."""
    for names in moving_together(manifest):
        kept, settings = manifest.optimizations.get(names[0]), settings_of(manifest, names[0])
        if kept is None or kept.reviewed is None or settings.mode == "off":
            continue
        now = query_time(manifest, names[0])
        if now is not None and _is_time(kept, settings, now):
            one = group_of(manifest, names)
            if one.is_reviewed and not is_quiet(one.settings, now) and _has_run(manifest, one):
                yield one, now


def is_quiet_step(manifest: Manifest) -> bool:
    """Whether nothing can be due in a step, which most often is so: everything was looked at not long ago."""
    arrangement = known_arrangement(manifest)
    if arrangement is None or not arrangement.quiet:
        return False
    kept, settings, until = arrangement.quiet[0]
    if kept is not manifest.optimizations or settings is not manifest.optimizer:
        return False
    now = clock(manifest)
    return now is not None and now < until


def note_quiet(manifest: Manifest, candidates: Iterable[tuple[PlanGroup, int]]) -> None:
    """Note until when nothing is due, in a step in which nothing is; once for what is kept of the queries."""
    arrangement, known = known_arrangement(manifest), (manifest.optimizations, manifest.optimizer)
    if arrangement is None or not all(_is_idle(manifest, one.lead, one.kept) for one, _ in candidates):
        return
    if not (arrangement.quiet and all(map(is_, arrangement.quiet[0], known))):
        arrangement.quiet[:] = [(*known, _quiet_until(manifest))]


def _quiet_until(manifest: Manifest) -> int:
    """The least event time at which something is due; the beginning where one has not begun, or has to wait."""
    if any((kept := manifest.optimizations.get(name)) is None or kept.reviewed is None for name in manifest.queries):
        return BEGINNING
    until = LAST_TIME
    for names in moving_together(manifest):
        kept, settings = manifest.optimizations[names[0]], settings_of(manifest, names[0])
        now, seen = query_time(manifest, names[0]), _seen(kept)
        if settings.mode != "off" and seen is not None and not _is_idle(manifest, names[0], kept):
            if now is None or _is_time(kept, settings, now):
                return BEGINNING
            until = min(until, seen + settings.review)
    return until


def _is_idle(manifest: Manifest, lead: str, kept: Optimization) -> bool:
    """Whether a look at queries leads to nothing, whatever they do."""
    return not kept.settled and bool(without_choice(manifest, lead))


def _is_time(kept: Optimization, settings: OptimizerSettings, now: int) -> bool:
    """Whether it is time. What is settled was seen after its review; once it is not settled any more, it is reviewed at
    once.
    """
    seen = _seen(kept)
    return seen is not None and now - seen >= settings.review


def _seen(kept: Optimization) -> int | None:
    """The event time of the last look."""
    return kept.seen if kept.settled and kept.seen is not None else kept.reviewed


def _has_run(manifest: Manifest, one: PlanGroup) -> bool:
    """Whether the queries have run and are not on their way to another plan."""
    entries = [manifest.queries[name] for name in one.queries]
    return entries[0].since < manifest.step and not any(entry.migrations for entry in entries)


def is_quiet(settings: OptimizerSettings, now: int) -> bool:
    """Whether a time of day is one of the quiet ones; an hour that ends before it begins ends the day after."""
    time = now % DAY
    return any(begin <= time < end if begin <= end else time >= begin or time < end for begin, end in settings.quiet)
