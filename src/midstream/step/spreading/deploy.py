"""The deployment of a query that is spread over nodes, as it lies in a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from midstream.language.query import Query
from midstream.model.node_spread import NodeSpread, SourceSlices
from midstream.ring.columns import Words
from midstream.ring.deployment import Deployment
from midstream.ring.discovery import spreading
from midstream.ring.even_ages import even_ages
from midstream.ring.joined_rows import Keys
from midstream.ring.placement import placement
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import Spreading


def deployment_of(query: Query, spread: NodeSpread, seed: int = 0, moments: tuple[int, ...] = (0,)) -> Deployment:
    """How the sources of a query, whose windows are RANGE windows, are deployed over the nodes of its spread.

    The aliases of `query` must be those that the `master` and the slices of the spread are named by.
    """
    return Deployment(
        windows_of(query),
        spread.nodes,
        moments,
        placed_by={label: key.text() for label, key in placement(query).items()},
        ages=_ages(query, spread),
        tables={label: _table(slices) for label, slices in spread.slices.items()},
        master=spread.master,
        segment=spread.segment,
        copies=spread.copies,
        seed=seed,
    )


def windows_of(query: Query) -> dict[str, int]:
    """The windows of a query's sources, in microseconds."""
    return {source.alias: source.window.size for source in query.sources if source.window is not None}


def keys_of(query: Query) -> Keys:
    """The key classes that sources are placed by."""
    return {key.text(): key for key in placement(query).values()}


def grown(
    query: Query, spread: NodeSpread, arrivals: Mapping[str, Words], bound: int, moments: tuple[int, ...]
) -> NodeSpread:
    """The spread once these rows have come, with these moments in flight.

    Where rows stay where they came, a slice is 1/N of the window long, and slices whose rows have all ended before
    `bound` are left out.
    """
    spread = replace(spread, moment=moments[-1], span=_span(spread.moment, arrivals, moments))
    if not spreading(spread.scheme).keeps_slices:
        return spread
    slices, windows = {}, windows_of(query)
    for label, ts in arrivals.items():
        slices[label] = _grown(spread.slices.get(label), ts, max(windows[label] // spread.nodes, 1), spread.nodes)
        slices[label] = _slices(_table(slices[label]).trimmed(bound - windows[label]))
    return replace(spread, slices=slices)


def begun_slices(query: Query, spread: NodeSpread) -> NodeSpread:
    """The spread with one slice of each source, at its first node, where it goes by slices."""
    if not spreading(spread.scheme).keeps_slices:
        return replace(spread, slices={})
    return replace(spread, slices={alias: SourceSlices((0,), (0,)) for alias in query.aliases})


def rounds_of(chosen: Spreading, arrivals: Mapping[str, Words], before: int | None) -> tuple[tuple[int, ...], Words]:
    """The moments in flight in a step, and from which event time on a row is of each but the first.

    The step's rows are cut in `rounds` parts of equal size; a part's moment is that of its newest row.
    """
    ts = np.sort(np.concatenate(list(arrivals.values())))
    parts = [part for part in np.array_split(ts, chosen.rounds) if len(part)]
    newest = [int(part[-1]) for part in parts]
    moments = tuple(one if before is None else max(before, one) for one in newest) or (before or 0,)
    return moments, np.array([part[0] for part in parts[1:]], np.int64)


def _ages(query: Query, spread: NodeSpread) -> dict[str, tuple[int, ...]]:
    """Where slices end, where rows go from node to node as they grow older."""
    if not spreading(spread.scheme).ages:
        return {}
    return {label: even_ages(window, spread.nodes, spread.span) for label, window in windows_of(query).items()}


def _span(before: int | None, arrivals: Mapping[str, Words], moments: tuple[int, ...]) -> int:
    """By how much event time goes on with each moment in flight."""
    if before is None:
        before = min((int(ts.min()) for ts in arrivals.values() if len(ts)), default=moments[-1])
    return (moments[-1] - before) // len(moments)


def _grown(slices: SourceSlices | None, ts: Words, length: int, nodes: int) -> SourceSlices:
    if not len(ts):
        return slices or SourceSlices((0,), (0,))
    # What stands for no slices yet begins with the first rows.
    known = slices is not None and (slices.rows or len(slices.starts) > 1)
    table = _table(slices) if known and slices is not None else SliceTable((int(ts.min()),), (0,))
    return _slices(table.grown(ts, length, nodes))


def _table(slices: SourceSlices) -> SliceTable:
    return SliceTable(slices.starts, slices.nodes, slices.rows, slices.newest)


def _slices(table: SliceTable) -> SourceSlices:
    return SourceSlices(table.starts, table.nodes, table.rows, table.newest)
