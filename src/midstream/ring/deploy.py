"""The deployment of a query that is spread over nodes, as it lies in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from midstream.logical.query import Query
from midstream.model.node_spread import NodeSpread, SourceRows, SourceSlices
from midstream.ring.columns import Words
from midstream.ring.deployment import Deployment, even_ages, placement
from midstream.ring.joined_rows import Keys
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import Passive, Spreading, spreading

BINS = 128
"""In so many parts of equal length the rows of a window are counted."""

REMEMBERED = 8
"""The mean is over so many windows at most; what came before counts less and less."""


def with_arrivals(known: SourceRows, ts: Words, window: int, moment: int, before: int | None) -> SourceRows:
    """Count rows that have come until this moment, in microseconds, where `before` was the moment until then.

    >>> counted = with_arrivals(SourceRows(), np.arange(0, 1280, 10), window=1280, moment=1280, before=0)
    >>> counted.mean, len(counted.rows), sum(counted.rows)
    (128.0, 128, 128)
    """
    width = max(window // BINS, 1)
    # The first rows of a step look for rows that are older, at its end, than the window.
    oldest = ((moment if before is None else before) - window) // width
    begin, rows = known.begin, np.array(known.rows, np.int64)
    places = (ts // width)[ts // width >= oldest]
    rows, begin = rows[max(oldest - begin, 0) :], max(begin, oldest)
    if len(places):
        at = np.append(np.arange(len(rows)) + begin, places)
        first = int(at.min())
        counts = np.bincount(at - first, weights=np.append(rows, np.ones(len(places))))
        rows, begin = counts.astype(np.int64), first
    return _with_mean(replace(known, begin=begin, rows=tuple(rows.tolist())), ts, window, moment, before)


def fair_share(known: SourceRows, slices: int) -> int | None:
    """Compute the most rows of a slice, of which a window has so many; None while nothing is known.

    >>> fair_share(SourceRows(mean=100.0, known=5), slices=8), fair_share(SourceRows(), slices=8)
    (13, None)
    """
    return max(int(np.ceil(known.mean / slices)), 1) if known.known else None


def density(
    known: SourceRows, window: int, moments: Sequence[int], ages: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Sum up how many rows are of each age at these moments, in those of a bin; nought beyond what was counted."""
    width = max(window // BINS, 1)
    at = np.floor((np.array(moments)[:, None] - ages) / width).astype(np.int64) - known.begin
    rows = np.array([*known.rows, 0], np.float64)
    found: npt.NDArray[np.float64] = rows[np.where((at >= 0) & (at < len(known.rows)), at, len(known.rows))].sum(axis=0)
    return found


def ends_by_count(known: SourceRows, window: int, moment: int, nodes: int, most: int) -> Words:
    """Compute the ages at which slices of at most so many rows end, except the last, from the newest on.

    >>> steady = with_arrivals(SourceRows(), np.arange(0, 1280, 10), window=1280, moment=1280, before=0)
    >>> ends_by_count(steady, 1280, 1280, nodes=3, most=32).tolist()
    [320, 640]
    """
    width = max(window // BINS, 1)
    rows = np.append(0, np.cumsum(known.rows[::-1]))
    newest = (known.begin + len(known.rows)) * width
    ages = np.maximum(moment - newest, 0) + np.arange(len(rows)) * width
    wanted = np.arange(1, nodes) * most
    found = np.where(wanted < rows[-1], np.interp(wanted, rows, ages), window)
    return np.minimum(found, window).astype(np.int64)


def _with_mean(known: SourceRows, ts: Words, window: int, moment: int, before: int | None) -> SourceRows:
    since = before if before is not None and (known.known or not len(ts)) else int(ts.min(initial=moment))
    elapsed = max(moment - since, 0)
    weight = known.known + elapsed
    if not weight:
        return known
    mean = (known.mean * known.known + len(ts) * window) / weight
    return replace(known, mean=mean, known=min(weight, REMEMBERED * window))


NO_SLICES = SourceSlices((0,), (0,))
"""What stands for the slices of a source of which no row has come."""


def deployment_of(query: Query, spread: NodeSpread, seed: int = 0, moments: tuple[int, ...] = (0,)) -> Deployment:
    """Deploy the sources of a query, whose windows are RANGE windows, over the nodes of its spread.

    The aliases of `query` must be those that the `master` and the slices of the spread are named by.
    """
    return Deployment(
        windows_of(query),
        spread.nodes,
        moments,
        placed_by={label: key.text() for label, key in placement(query).items()},
        ages=_ages(query, spread),
        rings={label: ring for label, ring in spread.rings.items() if label in query.aliases},
        tables={label: table_of(slices) for label, slices in spread.slices.items()},
        master=spread.master,
        segment=spread.segment,
        copies=spread.copies,
        seed=seed,
    )


def spreading_of(query: Query, spread: NodeSpread, seed: int = 0) -> Spreading:
    """Choose how rows are placed: by the scheme of the spread, and while older rows run out, those by the one
    before."""
    now, before = spreading(spread.scheme), spread.before
    if before is None:
        return now
    formerly = deployment_of(query, replace(before, span=spread.span, moment=spread.moment), seed)
    return Passive(now, spread.begins, spreading_of(query, before, seed), formerly)


def windows_of(query: Query) -> dict[str, int]:
    """Return the windows of a query's sources, in microseconds."""
    return {source.alias: source.window.size for source in query.sources if source.window is not None}


def keys_of(query: Query) -> Keys:
    """Return the key classes that sources are placed by."""
    return {key.text(): key for key in placement(query).values()}


def grown(
    query: Query, spread: NodeSpread, arrivals: Mapping[str, Words], bound: int, moments: tuple[int, ...]
) -> NodeSpread:
    """Advance the spread once these rows have come, with these moments in flight.

    Where rows stay where they came, a slice is 1/N of the window long or a piece of that, and slices whose rows have
    all ended before `bound` are left out.
    """
    spread = _with_counts(query, spread, arrivals, moments[-1], spread.moment)
    spread = replace(spread, moment=moments[-1], span=_span(spread.moment, arrivals, moments))
    return _with_slices(query, spread, arrivals, bound)


def without_run_out(query: Query, spread: NodeSpread, bound: int) -> NodeSpread:
    """Remove former spreads whose rows have all ended before `bound`."""
    if spread.before is None:
        return spread
    if spread.begins - 1 + max(windows_of(query).values()) < bound:
        return replace(spread, begins=0, before=None)
    return replace(spread, before=without_run_out(query, spread.before, bound))


def slice_length(window: int, spread: NodeSpread, label: str) -> int:
    """Compute the length of a slice of a source where rows stay where they came, in microseconds."""
    return max(window // _slices(spread, label), 1)


def _slices(spread: NodeSpread, label: str) -> int:
    # Of a window of the source.
    return len(spread.ring(label)) * spread.pieces


def begun_slices(query: Query, spread: NodeSpread) -> NodeSpread:
    """Begin one slice of each source, at its first node, where the spread goes by slices; no row has been counted."""
    spread = replace(spread, came={})
    if not spreading(spread.scheme).keeps_slices:
        return replace(spread, slices={})
    return replace(spread, slices={alias: NO_SLICES for alias in query.aliases})


def rounds_of(chosen: Spreading, arrivals: Mapping[str, Words], before: int | None) -> tuple[tuple[int, ...], Words]:
    """Compute the moments in flight in a step, and from which event time on a row is of each but the first.

    The step's rows are cut in `rounds` parts of equal size; a part's moment is that of its newest row.
    """
    ts = np.concatenate(list(arrivals.values()))
    if len(ts):
        ts = np.sort(ts) if chosen.rounds > 1 else ts.max(keepdims=True)  # Of one part only the newest row matters.
    parts = [part for part in np.array_split(ts, chosen.rounds) if len(part)]
    newest = [int(part[-1]) for part in parts]
    moments = tuple(one if before is None else max(before, one) for one in newest) or (before or 0,)
    return moments, np.array([part[0] for part in parts[1:]], np.int64)


def _with_counts(
    query: Query, spread: NodeSpread, arrivals: Mapping[str, Words], moment: int, before: int | None
) -> NodeSpread:
    # Only where slices are bounded by count: of the spreads before, too, whose rows may still come late.
    if spread.before is not None:
        spread = replace(spread, before=_with_counts(query, spread.before, arrivals, moment, before))
    if not spread.count_bound:
        return spread
    windows, none = windows_of(query), SourceRows()
    came = {
        label: with_arrivals(spread.came.get(label, none), ts, windows[label], moment, before)
        for label, ts in arrivals.items()
    }
    return replace(spread, came=came)


def _with_slices(query: Query, spread: NodeSpread, arrivals: Mapping[str, Words], bound: int) -> NodeSpread:
    if spread.before is not None:
        older = {label: ts[ts < spread.begins] for label, ts in arrivals.items()}
        spread = replace(spread, before=_with_slices(query, spread.before, older, bound))
        arrivals = {label: ts[ts >= spread.begins] for label, ts in arrivals.items()}
    if not spreading(spread.scheme).keeps_slices:
        return spread
    windows = windows_of(query)
    tables = {label: _grown(spread, label, ts, windows[label]) for label, ts in arrivals.items()}
    trimmed = {label: table.trimmed(bound - windows[label]) for label, table in tables.items()}
    return replace(spread, slices={label: slices_of(table) for label, table in trimmed.items()})


def _ages(query: Query, spread: NodeSpread) -> dict[str, tuple[int, ...]]:
    # Only where rows go from node to node as they grow older.
    if not spreading(spread.scheme).ages:
        return {}
    return {label: _ages_of(spread, label, window) for label, window in windows_of(query).items()}


def _ages_of(spread: NodeSpread, label: str, window: int) -> tuple[int, ...]:
    came, moment, nodes = spread.came.get(label), spread.moment, len(spread.ring(label))
    if came is None or moment is None:
        return even_ages(window, nodes, spread.span, spread.cuts)
    if isinstance(spread.count_bound, str):
        # Slices end at the same ages for every moment in flight.
        moments = [moment - part * spread.span for part in range(spreading(spread.scheme).rounds)]
        by_age = partial(density, came, window, moments)
        return even_ages(window, nodes, spread.span, spread.cuts, by_age)
    even = even_ages(window, nodes, spread.span, spread.cuts)
    return tuple(np.minimum(even, ends_by_count(came, window, moment, nodes, spread.count_bound)).tolist())


def _span(before: int | None, arrivals: Mapping[str, Words], moments: tuple[int, ...]) -> int:
    # Event time goes on by this with each moment in flight.
    if before is None:
        before = min((int(ts.min()) for ts in arrivals.values() if len(ts)), default=moments[-1])
    return (moments[-1] - before) // len(moments)


def _grown(spread: NodeSpread, label: str, ts: Words, window: int) -> SliceTable:
    slices, ring = spread.slices.get(label, NO_SLICES), spread.ring(label)
    if not len(ts):
        return table_of(slices)
    # What stands for no slices yet begins with the first rows.
    table = SliceTable((int(ts.min()),), ring[:1]) if slices == NO_SLICES else table_of(slices)
    most = spread.count_bound or None
    if isinstance(most, str):
        most = fair_share(spread.came[label], _slices(spread, label))
    return table.grown(ts, slice_length(window, spread, label), spread.nodes, most, ring)


def table_of(slices: SourceSlices) -> SliceTable:
    """Make the state slice table that a manifest keeps as `slices`."""
    return SliceTable(slices.starts, slices.nodes, slices.rows, slices.newest)


def slices_of(table: SliceTable) -> SourceSlices:
    """Write a state slice table as a manifest keeps it."""
    return SourceSlices(table.starts, table.nodes, table.rows, table.newest)
