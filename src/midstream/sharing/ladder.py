"""Queries of one filter whose windows are nested: each answer is a prefix of the slices, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from midstream.runtime.result_operator import Answer
from midstream.sharing.member import Member
from midstream.sharing.results import Results, table_of
from midstream.state.combinations import Words
from midstream.state.rows import take

FEW = 16
"""A prefix so many times shorter than all results is sorted; a longer one is found by looking at each result."""

AT_ONCE = 1 << 18
"""Rows of small answers that are taken together, before each gets its part."""


@dataclass(frozen=True)
class Ladder:
    """`rungs` ascend by the windows in `sizes`, each with the queries that have these; all have the filter `bits`."""

    bits: Mapping[str, int]
    sizes: tuple[Mapping[str, int], ...]
    rungs: tuple[tuple[Member, ...], ...]


def ladders(members: Sequence[Member]) -> list[Ladder]:
    """The members by filter, each set of windows a ladder where they are nested, else several."""
    by_filter: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], list[Member]]] = {}
    for member in members:
        bits, sizes = tuple(sorted(member.want.bits.items())), tuple(sorted(member.want.sizes.items()))
        by_filter.setdefault(bits, {}).setdefault(sizes, []).append(member)
    found = []
    for bits, by_sizes in by_filter.items():
        waiting = sorted(by_sizes, key=lambda sizes: [size for _, size in sizes])
        while waiting:
            rungs, others = waiting[:1], waiting[:0]
            for sizes in waiting[1:]:
                nested = all(a <= b for (_, a), (_, b) in zip(rungs[-1], sizes, strict=True))
                (rungs if nested else others).append(sizes)
            found.append(Ladder(dict(bits), tuple(map(dict, rungs)), tuple(tuple(by_sizes[r]) for r in rungs)))
            waiting = others
    return found


def climb(results: Results, ladder: Ladder) -> dict[str, Answer]:
    """The answers of a ladder's members: the results up to each rung."""
    levels, passed = results.levels(ladder.sizes), results.passed(ladder.bits)
    here = np.flatnonzero(levels < len(ladder.rungs) if passed is None else passed & (levels < len(ladder.rungs)))
    levels = levels[here]
    by_level = np.argsort(levels, kind="stable")
    ends = np.searchsorted(levels[by_level], np.arange(len(ladder.rungs)), "right")
    chosen = np.zeros(0, np.int64)
    wanted: dict[str, dict[str, Words]] = {}
    select: dict[str, Member] = {}
    for rung, end in enumerate(ends.tolist()):
        if len(chosen) != end:
            chosen = _up_to(rung, end, levels, by_level)
        for member in ladder.rungs[rung]:
            seen = results.seen_by(member)
            select.setdefault(member.outputs, member)
            own = chosen if seen is None else chosen[seen[here[chosen]]]
            wanted.setdefault(member.outputs, {})[member.name] = own
    given: dict[str, Answer] = {}
    for outputs, places in wanted.items():
        given.update(portions(table_of(results, select[outputs], here), places))
    return given


def portions(whole: Answer, places: Mapping[str, Words]) -> Iterator[tuple[str, Answer]]:
    """Each one's rows of an answer: whoever wants the same gets the same, small ones are taken together."""
    alike: dict[int, list[str]] = {}
    for name, at in places.items():
        alike.setdefault(id(at), []).append(name)
    waiting: list[tuple[list[str], Words]] = []
    size = 0
    for names in alike.values():
        at = places[names[0]]
        if len(at) == len(whole.times):
            yield from ((name, whole) for name in names)
            continue
        waiting.append((names, at))
        size += len(at)
        if size >= AT_ONCE:
            yield from _served(whole, waiting)
            waiting, size = [], 0
    yield from _served(whole, waiting)


def _served(whole: Answer, waiting: Sequence[tuple[list[str], Words]]) -> Iterator[tuple[str, Answer]]:
    if not waiting:
        return
    at = waiting[0][1] if len(waiting) == 1 else np.concatenate([places for _, places in waiting])
    table, times = take(whole.table, at), whole.times[at]
    start = 0
    for names, places in waiting:
        end = start + len(places)
        own = Answer(table.slice(start, len(places)), times[start:end])
        yield from ((name, own) for name in names)
        start = end


def _up_to(rung: int, end: int, levels: Words, by_level: Words) -> Words:
    """The places of the results up to a rung, in order; looking at all is cheaper than sorting many."""
    if end == len(levels):
        return np.arange(end)
    return np.sort(by_level[:end]) if end * FEW < len(levels) else np.flatnonzero(levels <= rung)
