"""What is kept of shared sources: for how long, and how far back it serves a query that enters a chain. Pure.

What cannot be relabelled is what was never kept. The dissertation leaves that case out (Wang §7.3); here a query whose
window or filter reaches beyond what is kept answers from the rows that are, and says from when it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.language.expression import Expression
from midstream.language.query import Query
from midstream.model.manifest import Manifest
from midstream.model.sharing import ALWAYS, Chain, SharedSource, SourceFilter
from midstream.runtime.watermark import watermarks
from midstream.sharing.discovery import scheme
from midstream.sharing.shape import Shape
from midstream.state.lineage import MOST_FILTERS, Lineage


@dataclass(frozen=True)
class Coverage:
    """How far back the rows that are kept of a source serve a query.

    `start` is the event time from which on every row that it reads is there, None where only rows to come are; `filter`
    is its filter on the source once it has entered.
    """

    start: int | None
    filter: SourceFilter


def coverage_of(manifest: Manifest, shape: Shape, label: str, name: str, history: bool) -> Coverage:
    """The coverage of a query's source by the shared source `name`; without `history`, of rows to come alone.

    A filter whose conjuncts are among the query's keeps every row that the query reads (Wang Fig. 7.6: filters between
    slices are disjunctions), so the best of those counts.
    """
    stream, text, size = shape.query.source(label).stream, shape.texts[label], shape.sizes[label]
    source = _source(manifest, shape, label, name)
    times = _Times.of(manifest, stream, purged_to(manifest, name))
    conjuncts = tuple(sorted(c.text() for c in shape.filters[label]))
    columns = max((source.columns.get(c, times.fresh) for c in shape.columns[label]), default=ALWAYS)
    starts = [
        max(_start(one, times.purged, source.kind, size), columns)
        for one in source.filters.values()
        if set(one.conjuncts) <= set(conjuncts)
    ]
    best = min(starts, default=None) if history else None
    known = source.filters.get(text)
    if known is None:
        return Coverage(best, _new_filter(source, manifest.step, conjuncts, size, best, times))
    if best is not None and best < max(_start(known, times.purged, source.kind, size), columns):
        # Other filters keep rows that were not tested by this one yet: from this step on they are.
        rows_kept = max(known.rows_kept, size if best == ALWAYS else 0)
        known = SourceFilter(
            known.bit, conjuncts, known.size, manifest.step, best, min(best, times.mark), rows_kept=rows_kept
        )
        return Coverage(best, replace(known, size=max(size, known.size)))
    return Coverage(best, _widened(known, source.kind, size, times))


@dataclass(frozen=True)
class _Times:
    """How far a stream has come: `fresh` is after every row that it has brought; rows yet to come may be older than
    those, but not than `mark`; rows whose lifetime ended by `purged` may be gone.
    """

    fresh: int
    mark: int
    purged: int

    @staticmethod
    def of(manifest: Manifest, stream: str, purged: int) -> _Times:
        mark = watermarks(manifest.streams, manifest.progress)[stream]
        return _Times(next_time(manifest, stream), mark, purged)


def _source(manifest: Manifest, shape: Shape, label: str, name: str) -> SharedSource:
    """A shared source; a new one, where there is none of that name yet."""
    new = SharedSource(shape.query.source(label).stream, shape.kind(label), manifest.step)
    return manifest.shared_sources.get(name, new)


def _new_filter(
    source: SharedSource, step: int, conjuncts: tuple[str, ...], size: int, best: int | None, times: _Times
) -> SourceFilter:
    """A filter that is new on a source, of whose rows to pass it those are there from `best` on."""
    complete_from = times.fresh if best is None else best
    kept_from = ALWAYS if best is None else min(complete_from, times.mark)
    rows_kept = size if ALWAYS in (complete_from, times.fresh) else 0
    used = {other.bit for other in source.filters.values()}
    bit = next(bit for bit in range(MOST_FILTERS) if bit not in used)
    return SourceFilter(bit, conjuncts, size, step, complete_from, kept_from, best is None, rows_kept)


def _widened(known: SourceFilter, kind: str, size: int, times: _Times) -> SourceFilter:
    """A filter with a window of this size among those of its queries."""
    if size <= known.size:
        return known
    if kind == "range":
        young = _less(times.purged, known.size)
        complete_from, kept_from = max(known.complete_from, young), max(known.kept_from, young)
        return replace(known, size=size, complete_from=complete_from, kept_from=kept_from)
    rows_kept = size if times.fresh == ALWAYS else known.rows_kept
    return replace(known, size=size, complete_from=max(known.complete_from, times.fresh), rows_kept=rows_kept)


def _start(one: SourceFilter, purged: int, kind: str, size: int) -> int:
    """The event time from which on all rows that pass a filter are kept."""
    if kind == "rows":
        return ALWAYS if size <= one.rows_kept else max(one.complete_from, ALWAYS + 1)
    return max(one.complete_from, _less(purged, one.size))


def extended(manifest: Manifest, shape: Shape, label: str, name: str, coverage: Coverage) -> SharedSource:
    """The shared source with what a query reads of it."""
    source = _source(manifest, shape, label, name)
    fresh = next_time(manifest, source.stream)
    columns = {**dict.fromkeys(shape.columns[label], fresh), **source.columns}
    filters = {**source.filters, shape.texts[label]: coverage.filter}
    return replace(source, filters=filters, columns=columns, purged_to=purged_to(manifest, name))


def visible_past(
    manifest: Manifest, shape: Shape, coverages: Mapping[str, Coverage], history: bool
) -> tuple[str | int, int | None]:
    """What a query sees of the past, and the event time from which on that makes no difference.

    As the events `QueryAdded` and `QueryChanged` say it: "all", rows from an event time on, or "new" ones.
    """
    if all(next_time(manifest, stream) == ALWAYS for stream in shape.streams):
        return "all", None
    marks = watermarks(manifest.streams, manifest.progress)
    own = min(marks[stream] for stream in shape.streams)
    starts = [coverage.start for coverage in coverages.values()]
    if history and None not in starts:
        far = [
            s for label, s in zip(coverages, starts, strict=True) if s is not None and not _enough(shape, label, s, own)
        ]
        if not far:
            return "all", None
        if all(shape.kind(label) == "range" for label in coverages):
            return max(far), max(far) + max(shape.sizes.values())
    return "new", horizon(manifest, shape.query)


def horizon(manifest: Manifest, query: Query) -> int | None:
    """The event time from which on no row that has come so far is in a window; None where windows count rows."""
    if any(s.window is None or s.window.kind == "rows" for s in query.sources):
        return None
    heard = [s for s in query.sources if next_time(manifest, s.stream) != ALWAYS]
    return max((next_time(manifest, s.stream) + s.window.size for s in heard if s.window is not None), default=None)


def _enough(shape: Shape, label: str, start: int, own: int) -> bool:
    if start == ALWAYS:
        return True
    return shape.kind(label) == "range" and start <= _less(own, shape.sizes[label])


def purged_to(manifest: Manifest, name: str) -> int:
    """The event time by which rows of a shared source whose lifetime had ended may be gone, whoever has read it."""
    marks = watermarks(manifest.streams, manifest.progress)
    readers = [chain for chain in manifest.chains.values() if name in chain.sources.values()]
    now = min((min(marks[stream] for stream in chain.streams) for chain in readers), default=ALWAYS)
    return max(now, manifest.shared_sources[name].purged_to) if name in manifest.shared_sources else now


def next_time(manifest: Manifest, stream: str) -> int:
    """The event time after every row that a stream has brought; before all time where it has brought none."""
    progress = manifest.progress.get(stream)
    return ALWAYS if progress is None or progress.greatest is None else progress.greatest + 1


def lineage_of(
    manifest: Manifest, name: str, chain: Chain, conditions: Mapping[str, tuple[Expression, ...]]
) -> Lineage:
    """How long the rows of a shared source live: for each filter as long as the widest window of its queries.

    `conditions` are the filters in use by their text; of others rows are purged.
    """
    source = manifest.shared_sources[name]
    if not scheme(manifest.sharing).filtered:
        widest = max(one.size for one in source.filters.values())
        everything = SourceFilter(MOST_FILTERS, (), widest, manifest.reshared)
        return Lineage((everything,), source.stream, source.kind, (), source.since)
    filters = [_since_reshared(manifest, one) for text, one in source.filters.items() if text in conditions]
    ordered = tuple(sorted(filters, key=lambda f: (-f.size, f.bit)))
    return Lineage(ordered, source.stream, source.kind, chain.cuts, source.since, conditions)


def _since_reshared(manifest: Manifest, one: SourceFilter) -> SourceFilter:
    """The filter as rows are tested by it: all of them, where the scheme has changed since it was first in use."""
    future_only = one.future_only and one.since >= manifest.reshared
    return replace(one, since=max(one.since, manifest.reshared), future_only=future_only)


def _less(time: int, size: int) -> int:
    return ALWAYS if time <= ALWAYS + size else time - size
