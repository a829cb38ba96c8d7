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
    fresh = next_time(manifest, stream)
    # Rows yet to come may be older than others that have, but not than this.
    mark = watermarks(manifest.streams, manifest.progress)[stream]
    source = manifest.shared_sources.get(name, SharedSource(stream, shape.kind(label), manifest.step))
    purged, conjuncts = purged_to(manifest, name), tuple(sorted(c.text() for c in shape.filters[label]))
    columns = [source.columns.get(c, fresh) for c in shape.columns[label]]
    best: int | None = None
    for other in source.filters.values():
        if set(other.conjuncts) <= set(conjuncts):
            start = max((_start(other, purged, source.kind, size), *columns))
            best = start if best is None else min(best, start)
    known = source.filters.get(text)
    if known is None:
        future_only = best is None or not history
        complete_from = fresh if best is None or future_only else best
        used = {other.bit for other in source.filters.values()}
        bit = next(bit for bit in range(MOST_FILTERS) if bit not in used)
        kept_from = ALWAYS if future_only else min(complete_from, mark)
        rows_kept = size if ALWAYS in (complete_from, fresh) else 0
        new = SourceFilter(bit, conjuncts, size, manifest.step, complete_from, kept_from, future_only, rows_kept)
        return Coverage(best if history else None, new)
    grown = known
    if history and best is not None and best < max((_start(known, purged, source.kind, size), *columns)):
        # Other filters keep rows that were not tested by this one yet: from this step on they are.
        rows_kept = max(known.rows_kept, size if best == ALWAYS else 0)
        grown = SourceFilter(
            known.bit, conjuncts, known.size, manifest.step, best, min(best, mark), rows_kept=rows_kept
        )
    elif size > known.size and source.kind == "range":
        young = _less(purged, known.size)
        grown = replace(known, complete_from=max(known.complete_from, young), kept_from=max(known.kept_from, young))
    elif size > known.size:
        rows_kept = size if fresh == ALWAYS else known.rows_kept
        grown = replace(known, complete_from=max(known.complete_from, fresh), rows_kept=rows_kept)
    return Coverage(best if history else None, replace(grown, size=max(size, known.size)))


def _start(one: SourceFilter, purged: int, kind: str, size: int) -> int:
    """The event time from which on all rows that pass a filter are kept."""
    if kind == "rows":
        return ALWAYS if size <= one.rows_kept else max(one.complete_from, ALWAYS + 1)
    return max(one.complete_from, _less(purged, one.size))


def extended(manifest: Manifest, shape: Shape, label: str, name: str, coverage: Coverage) -> SharedSource:
    """The shared source with what a query reads of it."""
    stream = shape.query.source(label).stream
    source = manifest.shared_sources.get(name, SharedSource(stream, shape.kind(label), manifest.step))
    fresh = next_time(manifest, stream)
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
