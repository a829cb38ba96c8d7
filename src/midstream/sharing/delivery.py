"""How the results of a chain reach its queries: as prefixes of the slices, or by a router.

Queries of one filter whose windows are nested need no router: each answer is a prefix of the slices, in order of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import holds
from midstream.runtime.result_operator import Answer
from midstream.sharing.chain_results import Mask, Member, Results, table_of
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import stable_order
from midstream.state.rows import take

FEW = 16
"""A prefix so many times shorter than all results is sorted; a longer one is found by looking at each result."""

AT_ONCE = 1 << 18
"""Rows of small answers that are taken together, before each gets its part."""


@dataclass(frozen=True)
class NestedWindows:
    """Queries of one filter on each source, by windows of which each lies within the next.

    `filters` and `sizes` are by label; `members[i]` are the queries whose windows are `sizes[i]`.
    """

    filters: Mapping[str, str]
    sizes: tuple[Mapping[str, int], ...]
    members: tuple[tuple[Member, ...], ...]


def nested_windows(members: Sequence[Member]) -> list[NestedWindows]:
    """Group members by filter; windows that are not nested form several groups."""
    by_filter: dict[tuple[tuple[str, str], ...], dict[tuple[tuple[str, int], ...], list[Member]]] = {}
    for member in members:
        ordered = sorted(member.demands.items())
        filters, sizes = tuple((a, d.filter) for a, d in ordered), tuple((a, d.size) for a, d in ordered)
        by_filter.setdefault(filters, {}).setdefault(sizes, []).append(member)
    found = []
    for filters, by_sizes in by_filter.items():
        waiting = sorted(by_sizes, key=lambda sizes: [size for _, size in sizes])
        while waiting:
            nested, others = waiting[:1], waiting[:0]
            for sizes in waiting[1:]:
                within = all(a <= b for (_, a), (_, b) in zip(nested[-1], sizes, strict=True))
                (nested if within else others).append(sizes)
            alike = tuple(tuple(by_sizes[sizes]) for sizes in nested)
            found.append(NestedWindows(dict(filters), tuple(map(dict, nested)), alike))
            waiting = others
    return found


def by_prefix(results: Results, nested: NestedWindows) -> dict[str, Answer]:
    """Answer queries with nested windows by prefixes of the results, with no test against a query's window."""
    levels, passed = results.levels(nested.sizes), results.passed(nested.filters)
    within = levels < len(nested.sizes)
    here = np.flatnonzero(within if passed is None else passed & within)
    levels = levels[here]
    by_level = np.argsort(levels, kind="stable")
    ends = np.searchsorted(levels[by_level], np.arange(len(nested.sizes)), "right")
    prefix = np.zeros(0, np.int64)
    places: dict[str, dict[str, Words]] = {}
    first: dict[str, Member] = {}
    for level, end in enumerate(ends.tolist()):
        if len(prefix) != end:
            prefix = _up_to(level, end, levels, by_level)
        for member in nested.members[level]:
            seen = results.seen_by(member)
            first.setdefault(member.outputs, member)
            own = prefix if seen is None else prefix[seen[here[prefix]]]
            places.setdefault(member.outputs, {})[member.name] = own
    answers: dict[str, Answer] = {}
    for outputs, own_places in places.items():
        answers.update(portions(table_of(results, first[outputs], here), own_places))
    return answers


def _up_to(level: int, end: int, levels: Words, by_level: Words) -> Words:
    # In order; looking at all results is cheaper than sorting many.
    if end == len(levels):
        return np.arange(end)
    return np.sort(by_level[:end]) if end * FEW < len(levels) else np.flatnonzero(levels <= level)


def portions(whole: Answer, places: Mapping[str, Words]) -> Iterator[tuple[str, Answer]]:
    """Take each query's rows of an answer: equal places give one table, small ones are taken together."""
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
            yield from _taken(whole, waiting)
            waiting, size = [], 0
    yield from _taken(whole, waiting)


def _taken(whole: Answer, waiting: Sequence[tuple[list[str], Words]]) -> Iterator[tuple[str, Answer]]:
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


def by_router(results: Results, member: Member) -> Answer:
    """Answer a member by testing every result against its windows, and those that remain against its filters.

    The baseline (Wang §4.1): work grows with results times queries.
    """
    at = within_windows(results, member)
    for conditions in member.filters.values():
        for condition in conditions:
            results.decided += len(at)
            left = Combinations(results.found.take(at).refs, {}, {})
            at = at[holds(condition, results.lane.reader(results.rows, left), len(at))]
    return table_of(results, member, at)


def within_windows(results: Results, member: Member) -> Words:
    """Find the results within a member's windows, made of rows that it sees."""
    mask: Mask = np.ones(len(results.found), np.bool_)
    for label, demand in member.demands.items():
        mask &= results.age(label) <= demand.size
    results.decided += len(mask)
    seen = results.seen_by(member)
    return np.flatnonzero(mask if seen is None else mask & seen)


def merged(answers: Sequence[Answer]) -> Answer:
    """Merge the answers of disjoint joins in order of time (the order-preserving union of Wang §4.2)."""
    if len(answers) == 1:
        return answers[0]
    times = np.concatenate([answer.times for answer in answers])
    order = stable_order(times)
    table = pa.concat_tables([answer.table for answer in answers]).take(pa.array(order))
    return Answer(table.combine_chunks(), times[order])
