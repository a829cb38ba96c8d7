"""Results of a shared ring to their queries, by bitmaps instead of windows (Wang ch. 20: matrix O, vector T).

A running ring routes by `routed`. Its entries come from `LogicalSlices.serves`, which has for each slice what `entries`
makes of matrix O, whether or not windows are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from midstream.ring.columns import Words
from midstream.ring.logical_slices import Bitmaps, bitmaps

Orders = npt.NDArray[np.uint8]
"""Matrix O as bitmaps: the i-th query by window (first axis) on a stream (second axis)."""


def query_orders(windows: Mapping[str, Sequence[int]]) -> Orders:
    """Build matrix O: for each stream the queries in the order of their windows, the shortest first, one bit each.

    >>> example = {"A": [30, 10, 20], "B": [10, 20, 30], "C": [20, 30, 10]}
    >>> [[f"{bits:03b}" for bits in row] for row in query_orders(example)[:, :, 0]]
    [['010', '001', '100'], ['100', '010', '001'], ['001', '100', '010']]
    """
    columns = [np.argsort(np.array(found), kind="stable") for found in windows.values()]
    count = len(columns[0])
    return np.stack([bitmaps(np.eye(count, dtype=np.bool_)[column]) for column in columns], axis=1)


def entries(orders: Orders, stream: int, slices: Words) -> Bitmaps:
    """Look up T_j for rows of a stream in these slices, counted from 0: all queries from there on (Lemma 9).

    Slices are one for each query here, as in §20.1; of equal windows all but the first are empty.

    >>> example = {"A": [30, 10, 20], "B": [10, 20, 30], "C": [20, 30, 10]}
    >>> orders = query_orders(example)
    >>> [f"{bits:03b}" for bits in (*entries(orders, 1, np.array([1]))[0], *entries(orders, 2, np.array([2]))[0])]
    ['110', '010']
    """
    from_here_on = np.bitwise_or.accumulate(orders[::-1, stream], axis=0)[::-1]
    return np.concatenate([from_here_on, np.zeros_like(from_here_on[:1])])[slices]


def routed(vector: Sequence[Bitmaps]) -> Bitmaps:
    """Intersect the entries of vector T: the queries that each result goes to.

    The entry of the row that came last is all ones; selections are entries like those of slices (§20.2).

    >>> vector = [np.array([[0b111]], np.uint8), np.array([[0b110]], np.uint8), np.array([[0b010]], np.uint8)]
    >>> f"{routed(vector)[0, 0]:03b}"
    '010'
    """
    return reduce(np.bitwise_and, vector)
