"""Aggregates that give values of a group and not a figure of them: lists, texts of lists, ARG_MIN, ARG_MAX, FIRST and
LAST.

Their answer must not depend on the order in which rows come, or on plans: where nothing else decides, values stand in
ascending order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.logical.query import BY_ANOTHER, FIRSTS, AggregateCall
from midstream.state.combinations import Words

KEEPS_NULL, NEVER_NULL = frozenset({"array_agg", *FIRSTS}), frozenset({"collect_list", "collect_set"})


def collected(call: AggregateCall, values: pa.Array, by: pa.Array | None, owner: Words, groups: int) -> pa.Array:
    """One value per group.

    Lists are in order `by`, NULL last, then of their values. ARRAY_AGG has NULLs, the others leave them out; over
    nothing ARRAY_AGG and STRING_AGG are NULL, COLLECT_LIST and COLLECT_SET empty. ARG_MIN and ARG_MAX leave out rows
    where either is NULL, and give the least of several values. FIRST and LAST are what the list of ARRAY_AGG begins and
    ends with.

    >>> values, owner = pa.array(["b", None, "a"]), np.zeros(3, np.int64)
    >>> collected(AggregateCall("array_agg", None), values, None, owner, 1).to_pylist()
    [['a', 'b', None]]
    >>> collected(AggregateCall("arg_min", None), values, pa.array([2, 1, 3]), owner, 1).to_pylist()
    ['b']
    """
    kept = np.ones(len(values), np.bool_) if call.function in KEEPS_NULL else _there(values)
    if by is not None and call.function in BY_ANOTHER:
        kept &= _there(by)
    values, owner, by = values.filter(pa.array(kept)), owner[kept], None if by is None else by.filter(pa.array(kept))
    ranks = rank(values)
    keys = [ranks] if by is None else [ranks, rank(by, descending=call.descending or call.function == "arg_max")]
    order = np.lexsort((*keys, owner))
    values, owner, ranks = values.take(pa.array(order)), owner[order], ranks[order]
    if call.distinct:
        first = np.ones(len(owner), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (ranks[1:] != ranks[:-1])
        values, owner = values.filter(pa.array(first)), owner[first]
    counts = np.bincount(owner, minlength=groups)
    if call.function in BY_ANOTHER | FIRSTS:
        place = np.cumsum(counts) - (1 if call.function == "last" else counts)
        return values.take(pa.array(place, mask=counts == 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    empty = None if call.function in NEVER_NULL else pa.array(counts == 0)
    lists = pa.ListArray.from_arrays(offsets, values, mask=empty)
    return lists if call.separator is None else pc.binary_join(lists, call.separator)


def rank(values: pa.Array, *, descending: bool = False) -> Words:
    """For each value a number that is in the same order, equal for equal values, greatest for NULL.

    >>> rank(pa.array([5, None, 3, 5])).tolist(), rank(pa.array([5, None, 3]), descending=True).tolist()
    ([1, 2, 0, 1], [0, 2, 1])
    """
    if pt.is_duration(values.type):
        values = values.view(pa.int64())
    values = canonical(values) if pt.is_floating(values.type) else told_apart(values)
    codes = values.dictionary_encode("mask")
    dictionary = codes.dictionary.cast(pa.int8()) if pt.is_boolean(values.type) else codes.dictionary
    order = np.asarray(pc.sort_indices(dictionary))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))[::-1] if descending else np.arange(len(order))
    at = np.asarray(pc.fill_null(codes.indices, 0), np.int64)
    found = place[at] if len(place) else np.zeros(len(values), np.int64)
    return np.where(_there(values), found, len(order))


def told_apart(column: pa.Array) -> pa.Array:
    """The same values in a type of which Arrow tells equal ones: not as codes, nor as decimals of 32 or 64 bits."""
    if pt.is_dictionary(column.type):
        return told_apart(column.dictionary_decode())
    if pt.is_decimal(column.type) and column.type.bit_width < 128:
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return column


def canonical(column: pa.Array) -> pa.Array:
    """Floats with one zero and one NaN, so that SQL-equal values are one."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, mask=~column.is_valid().to_numpy(zero_copy_only=False))


def _there(values: pa.Array) -> Words:
    return values.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
