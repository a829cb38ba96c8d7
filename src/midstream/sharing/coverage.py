"""What is kept of shared sources: for how long, and how far back it serves a query that enters a chain. Pure.

What cannot be relabelled is what was never kept. The dissertation leaves that case out (Wang §7.3); here a query whose
window or filter reaches beyond what is kept answers from the rows that are, and says from when it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.model.manifest import Manifest
from midstream.model.sharing import ALWAYS, NEVER, Chain, Extent, SharedSource, SourceFilter
from midstream.runtime.watermark import watermarks
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import Shape
from midstream.state.lineage import MOST_FILTERS, Lineage


@dataclass(frozen=True)
class Coverage:
    """How far back the rows that are kept of a source serve a query.

    `extent` is where every row that it reads is there, None where only rows to come are; `filter` is its filter on the
    source once it has entered.
    """

    extent: Extent | None
    filter: SourceFilter


def coverage_of(manifest: Manifest, shape: Shape, label: str, name: str, history: bool) -> Coverage:
    """Compute the coverage of a query's source by the shared source `name`; without `history`, of later rows only.

    A filter whose conjuncts are among the query's keeps every row that the query reads (Wang Fig. 7.6: filters between
    slices are disjunctions), so the best of those counts.
    """
    stream, text, size = shape.query.source(label).stream, shape.texts[label], shape.sizes[label]
    source = _source(manifest, shape, label, name)
    times = _Times(manifest.step, next_time(manifest, stream), purged_to(manifest, name))
    conjuncts = tuple(sorted(c.text() for c in shape.filters[label]))
    columns = Extent()
    for column in shape.columns[label]:
        columns = columns.within(source.columns.get(column, times.arriving))
    extents = [
        _extent(one, times.purged, source.kind, size).within(columns)
        for one in source.filters.values()
        if set(one.conjuncts) <= set(conjuncts)
    ]
    best = min(extents, key=_reach, default=None) if history else None
    known = source.filters.get(text)
    if known is None:
        return Coverage(best, _new_filter(source, conjuncts, size, best, times))
    if best is not None and _reach(best) < _reach(_extent(known, times.purged, source.kind, size).within(columns)):
        # Other filters keep rows that were not tested by this one yet: from this step on they are. Rows that were kept
        # for this one stay, because queries that read it may have joined them.
        grown = known.grown if known.size > size else best
        kept_from, widest = min(best.time, known.kept_from), max(size, known.size)
        return Coverage(
            best,
            SourceFilter(known.bit, conjuncts, widest, manifest.step, best, kept_from, rows_kept=size, grown=grown),
        )
    return Coverage(best, _widened(known, source.kind, size, times))


@dataclass(frozen=True)
class _Times:
    """How far a stream has come by a step: `fresh` is after every row that it has brought; rows whose lifetime ended
    by `purged` may be gone.
    """

    step: int
    fresh: int
    purged: int

    @property
    def arriving(self) -> Extent:
        """The extent of the rows to come: of all rows, where none has come yet."""
        return Extent() if self.fresh == ALWAYS else Extent(ALWAYS, self.step, self.fresh)


def _reach(extent: Extent) -> tuple[int, int, int]:
    # The extent that reaches farthest back comes first.
    return extent.exact_from, extent.step, extent.time


def _source(manifest: Manifest, shape: Shape, label: str, name: str) -> SharedSource:
    new = SharedSource(shape.query.source(label).stream, shape.kind(label), manifest.step)
    return manifest.shared_sources.get(name, new)


def _new_filter(
    source: SharedSource, conjuncts: tuple[str, ...], size: int, best: Extent | None, times: _Times
) -> SourceFilter:
    # Of the rows that pass a new filter those of the extent `best` are there.
    complete = times.arriving if best is None or best.time == NEVER else best
    # No row to come is older than `time`: what is purged goes by the watermark of its own stream, or by a lesser one.
    kept_from = complete.time
    used = {other.bit for other in source.filters.values()}
    bit = next(bit for bit in range(MOST_FILTERS) if bit not in used)
    return SourceFilter(bit, conjuncts, size, times.step, complete, kept_from, best is None, size, complete)


def _widened(known: SourceFilter, kind: str, size: int, times: _Times) -> SourceFilter:
    if size <= known.size:
        return known
    if kind == "range":
        young = _less(times.purged, known.size)
        return replace(
            known, size=size, complete=known.complete.within(Extent(young)), kept_from=max(known.kept_from, young)
        )
    if times.fresh == ALWAYS:
        return replace(known, size=size, rows_kept=size)
    return replace(known, size=size, grown=known.complete.within(times.arriving))


def _extent(one: SourceFilter, purged: int, kind: str, size: int) -> Extent:
    if kind == "rows":
        return one.complete if size <= one.rows_kept else one.grown if size <= one.size else Extent(NEVER)
    return one.complete.within(Extent(_less(purged, one.size)))


def extended(manifest: Manifest, shape: Shape, label: str, name: str, coverage: Coverage) -> SharedSource:
    """Add to a shared source what a query reads of it."""
    source = _source(manifest, shape, label, name)
    arriving = _Times(manifest.step, next_time(manifest, source.stream), ALWAYS).arriving
    columns = {**dict.fromkeys(shape.columns[label], arriving), **source.columns}
    filters = {**source.filters, shape.texts[label]: coverage.filter}
    return replace(source, filters=filters, columns=columns, purged_to=purged_to(manifest, name))


@dataclass(frozen=True)
class Past:
    """What a query sees of rows that arrived before it, as the events `QueryAdded` and `QueryChanged` say it."""

    sees: str | int
    from_step: int = 0
    exact_from: int | None = None


def visible_past(manifest: Manifest, shape: Shape, coverages: Mapping[str, Coverage], history: bool) -> Past:
    """Return what a query sees of the past, and the event time from which on that makes no difference."""
    if all(next_time(manifest, stream) == ALWAYS for stream in shape.query.children):
        return Past("all")
    marks = watermarks(manifest.streams, manifest.progress)
    own = min(marks[stream] for stream in shape.query.children)
    extents = {label: coverage.extent for label, coverage in coverages.items()}
    if not history or None in extents.values():
        return Past("new", manifest.step, horizon(manifest, shape.query))
    far = {a: e for a, e in extents.items() if e is not None and not _enough(shape, a, e.exact_from, own)}
    if not far:
        return Past("all")
    ranged = all(shape.kind(label) == "range" for label in coverages)
    unpurged = all(_enough(shape, label, extent.time, own) for label, extent in far.items())
    if not ranged and not unpurged:
        return Past("new", manifest.step, horizon(manifest, shape.query))
    seen = Extent()
    for extent in far.values():
        seen = seen.within(extent)
    return Past("new" if unpurged else seen.time, seen.step, _exact_from(manifest, shape, far, seen, unpurged))


def _exact_from(
    manifest: Manifest, shape: Shape, far: Mapping[str, Extent], seen: Extent, unpurged: bool
) -> int | None:
    # From this event time on results have no row that is not seen; None where windows count rows.
    now = horizon(manifest, shape.query)
    if now is None:
        return None
    ends = [] if unpurged else [seen.time + max(shape.sizes.values())]
    for label, size in shape.sizes.items():
        # How far another source had come by that step is not known; by now it has come at least as far.
        known = label in far and far[label].step == seen.step
        came = far[label].fresh if known else next_time(manifest, shape.query.source(label).stream)
        if seen.step and came != ALWAYS:
            ends.append(came + size)
    return min(now, max(ends, default=now))


def horizon(manifest: Manifest, query: Query) -> int | None:
    """Return the event time from which no row so far is in a window; None where windows count rows."""
    if any(s.window is None or s.window.kind == "rows" for s in query.sources):
        return None
    heard = [s for s in query.sources if next_time(manifest, s.stream) != ALWAYS]
    return max((next_time(manifest, s.stream) + s.window.size for s in heard if s.window is not None), default=None)


def _enough(shape: Shape, label: str, start: int, own: int) -> bool:
    if start == ALWAYS:
        return True
    return shape.kind(label) == "range" and start <= _less(own, shape.sizes[label])


def purged_to(manifest: Manifest, name: str) -> int:
    """Return the event time by which rows of a shared source whose lifetime had ended may be gone."""
    marks = watermarks(manifest.streams, manifest.progress)
    readers = [chain for chain in manifest.chains.values() if name in chain.sources.values()]
    now = min((min(marks[stream] for stream in chain.streams) for chain in readers), default=ALWAYS)
    return max(now, manifest.shared_sources[name].purged_to) if name in manifest.shared_sources else now


def next_time(manifest: Manifest, stream: str) -> int:
    """Return the event time after every row that a stream has brought, `ALWAYS` where it has brought none."""
    progress = manifest.progress.get(stream)
    return ALWAYS if progress is None or progress.greatest is None else progress.greatest + 1


def lineage_of(
    manifest: Manifest, name: str, chain: Chain, conditions: Mapping[str, tuple[Expression, ...]]
) -> Lineage:
    """Derive how long a shared source's rows live: for each filter as long as the widest window of its queries.

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
    # Where the scheme has changed since the filter was first in use, all rows are tested by it anew.
    future_only = one.future_only and one.since >= manifest.reshared
    return replace(one, since=max(one.since, manifest.reshared), future_only=future_only)


def _less(time: int, size: int) -> int:
    return ALWAYS if time <= ALWAYS + size else time - size
