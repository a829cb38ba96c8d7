"""How far back what is held serves a query that joins a chain. Pure.

What cannot be relabelled is what was never kept. The dissertation leaves that case out (Wang §7.3); here a query whose
window or filter reaches beyond what is held answers from the rows that are, and says from when it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.language.query import Query
from midstream.model.holding import ALWAYS, Held, Holding
from midstream.model.manifest import Manifest
from midstream.runtime.watermark import watermarks
from midstream.sharing.shape import Shape
from midstream.state.lineage import MOST_FILTERS


@dataclass(frozen=True)
class Reach:
    """How far back what is held of a source serves a query.

    `start` is the event time from which on every row it wants is there, None where only rows to come are; `held` what
    the filter's entry becomes.
    """

    start: int | None
    held: Held


def reach_of(manifest: Manifest, shape: Shape, label: str, name: str, history: bool) -> Reach:
    """What of a source's held rows a query can begin with."""
    stream, text, size = shape.query.source(label).stream, shape.texts[label], shape.sizes[label]
    fresh = after(manifest, stream)
    # Rows yet to come may be older than others that have, but not than this.
    mark = watermarks(manifest.streams, manifest.progress)[stream]
    holding = manifest.holdings.get(name, Holding(stream, shape.kind(label), manifest.step))
    bound, parts = bound_of(manifest, name), tuple(sorted(c.text() for c in shape.filters[label]))
    columns = [holding.columns.get(c, fresh) for c in shape.reads[label]]
    best: int | None = None
    for held in holding.filters.values():
        if set(held.parts) <= set(parts):
            start = max((_start(held, bound, holding.kind, size), *columns))
            best = start if best is None else min(best, start)
    known = holding.filters.get(text)
    if known is None:
        blind = best is None or not history
        complete = fresh if best is None or blind else best
        used = {held.bit for held in holding.filters.values()}
        bit = next(bit for bit in range(MOST_FILTERS) if bit not in used)
        floor = ALWAYS if blind else min(complete, mark)
        counted = size if ALWAYS in (complete, fresh) else 0
        held = Held(bit, parts, size, manifest.step, complete, floor, blind, counted)
        return Reach(best if history else None, held)
    grown = known
    if history and best is not None and best < max((_start(known, bound, holding.kind, size), *columns)):
        # Other filters hold what this one has not been asked for yet: their rows are told now.
        counted = max(known.counted, size if best == ALWAYS else 0)
        grown = Held(known.bit, parts, known.size, manifest.step, best, min(best, mark), counted=counted)
    elif size > known.size and holding.kind == "range":
        young = _less(bound, known.size)
        grown = replace(known, complete=max(known.complete, young), floor=max(known.floor, young))
    elif size > known.size:
        counted = size if fresh == ALWAYS else known.counted
        grown = replace(known, complete=max(known.complete, fresh), counted=counted)
    return Reach(best if history else None, replace(grown, size=max(size, known.size)))


def _start(held: Held, bound: int, kind: str, size: int) -> int:
    """The event time from which on all rows of a filter are held."""
    if kind == "rows":
        return ALWAYS if size <= held.counted else max(held.complete, ALWAYS + 1)
    return max(held.complete, _less(bound, held.size))


def taken_in(manifest: Manifest, shape: Shape, label: str, name: str, reach: Reach) -> Holding:
    """The holding of a source with a query among those that want it."""
    stream = shape.query.source(label).stream
    holding = manifest.holdings.get(name, Holding(stream, shape.kind(label), manifest.step))
    fresh = after(manifest, stream)
    columns = {**dict.fromkeys(shape.reads[label], fresh), **holding.columns}
    filters = {**holding.filters, shape.texts[label]: reach.held}
    return replace(holding, filters=filters, columns=columns, bound=bound_of(manifest, name))


def seen_of(
    manifest: Manifest, shape: Shape, reaches: Mapping[str, Reach], history: bool
) -> tuple[str | int, int | None]:
    """What a query sees of the past, and the event time from which on that makes no difference."""
    if all(after(manifest, stream) == ALWAYS for stream in shape.streams):
        return "all", None
    marks = watermarks(manifest.streams, manifest.progress)
    own = min(marks[stream] for stream in shape.streams)
    starts = [reach.start for reach in reaches.values()]
    if history and None not in starts:
        far = [
            s for label, s in zip(reaches, starts, strict=True) if s is not None and not _enough(shape, label, s, own)
        ]
        if not far:
            return "all", None
        if all(shape.kind(label) == "range" for label in reaches):
            return max(far), max(far) + max(shape.sizes.values())
    return "new", horizon(manifest, shape.query)


def horizon(manifest: Manifest, query: Query) -> int | None:
    """The event time from which on no row that has come so far is in a window; None where windows count rows."""
    if any(s.window is None or s.window.kind == "rows" for s in query.sources):
        return None
    spoke = [s for s in query.sources if after(manifest, s.stream) != ALWAYS]
    return max((after(manifest, s.stream) + s.window.size for s in spoke if s.window is not None), default=None)


def _enough(shape: Shape, label: str, start: int, own: int) -> bool:
    if start == ALWAYS:
        return True
    return shape.kind(label) == "range" and start <= _less(own, shape.sizes[label])


def bound_of(manifest: Manifest, name: str) -> int:
    """The event time by which rows of a holding that had ended may be gone, for whoever has read it so far."""
    marks = watermarks(manifest.streams, manifest.progress)
    readers = [chain for chain in manifest.chains.values() if name in chain.holdings.values()]
    now = min((min(marks[stream] for stream in chain.streams) for chain in readers), default=ALWAYS)
    return max(now, manifest.holdings[name].bound) if name in manifest.holdings else now


def after(manifest: Manifest, stream: str) -> int:
    """The event time after every row that a stream has brought."""
    progress = manifest.progress.get(stream)
    return ALWAYS if progress is None or progress.greatest is None else progress.greatest + 1


def _less(time: int, size: int) -> int:
    return ALWAYS if time <= ALWAYS + size else time - size
