"""Bounds of the rows of a slice, set from the rates at which rows came (Wang §14.1).

Where rows stay where they came, a slice takes its share of what comes in a window on average, so that a burst lies in
more slices. Where rows move on with age, slices end where each has as many rows of the window as the others.

Differs from §14.1 in the second: with a bound by the average rate the tail, which has none there, would take all that a
burst brings beyond it. A bound that a user names leaves that to the tail, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from midstream.model.node_spread import SourceRows
from midstream.ring.columns import Words

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
