"""Comparisons and three-valued logic over columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import STORED_AS_NUMBERS, Datum, Mask, Values, build, is_scalar, valid, values
from midstream.expr.types import BOOLEAN, family

_NUMPY: dict[str, Callable[[Values, Values], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_ARROW: dict[str, Callable[[Datum, Datum], Datum]] = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
}
COMPARISONS = frozenset(_NUMPY)
# Out of bytes, for Arrow loads pandas to look at a Python value, and that is a quarter of what an import takes.
FALSE = pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(bytes(1))])[0]


def compare_numbers(operator: str, left: Datum, right: Datum) -> Mask:
    """A comparison of two data stored as numbers of one type; arbitrary where one is NULL.

    NaN equals NaN and is greater than every number, as in DuckDB and Spark.
    """
    a, b = values(left), values(right)
    found: Mask = np.asarray(_NUMPY[operator](a, b))
    if family(left.type) == "float" and (_has_nan(a) or _has_nan(b)):
        left_nan, right_nan = np.isnan(a), np.isnan(b)
        # NaN stands for one value above infinity: compare the flags where either side is NaN.
        found = np.where(left_nan | right_nan, _NUMPY[operator](left_nan, right_nan), found)
    return found


def _has_nan(numbers: Values) -> bool:
    return bool(numbers.size) and bool(np.isnan(numbers.min()))


def comparison(operator: str) -> Callable[..., Datum]:
    """The kernel of a comparison operator."""

    def kernel(_: pa.DataType, left: Datum, right: Datum) -> Datum:
        if family(left.type) in STORED_AS_NUMBERS:
            return build(compare_numbers(operator, left, right), valid(left, right), BOOLEAN)
        return _ARROW[operator](left, right)

    return kernel


_EQUAL, _NOT_LESS, _NOT_MORE, _MORE = (comparison(o) for o in ("eq", "ge", "le", "gt"))


def between(_: pa.DataType, value: Datum, low: Datum, high: Datum) -> Datum:
    """`value BETWEEN low AND high`."""
    return pc.and_kleene(_NOT_LESS(_, value, low), _NOT_MORE(_, value, high))


def is_in(_: pa.DataType, value: Datum, *items: Datum) -> Datum:
    """`value IN (items)`: NULL if nothing matches but something might."""
    if len(items) > 4 and family(value.type) not in ("float", "decimal", "other") and all(is_scalar(i) for i in items):
        known = pa.array([i.as_py() for i in items if i.is_valid], value.type)
        found = pc.is_in(value, value_set=known)
        unknown = pc.is_null(value) if len(known) == len(items) else pc.invert(found)
        return pc.if_else(unknown, pa.scalar(None, BOOLEAN), found)
    result: Datum = FALSE
    for item in items:
        result = pc.or_kleene(result, _EQUAL(_, value, item))
    return result


def distinct(_: pa.DataType, left: Datum, right: Datum) -> Datum:
    """`left IS DISTINCT FROM right`: a comparison for which NULL is a value."""
    same = pc.coalesce(_EQUAL(_, left, right), FALSE)
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.invert(pc.or_(same, both))


def case(type: pa.DataType, *branches: Datum) -> Datum:
    """`CASE WHEN condition THEN value ... ELSE value END`, as condition, value, ..., value."""
    result = branches[-1]
    for at in range(len(branches) - 3, -1, -2):
        result = pc.if_else(pc.coalesce(branches[at], FALSE), branches[at + 1], result)
    return result


def nullif(type: pa.DataType, value: Datum, left: Datum, right: Datum) -> Datum:
    """`value`, or NULL where `left = right`."""
    return pc.if_else(pc.coalesce(_EQUAL(type, left, right), FALSE), pa.scalar(None, value.type), value)


def greatest(_: pa.DataType, *items: Datum) -> Datum:
    """The greatest item that is not NULL."""
    result = items[0]
    for item in items[1:]:
        result = pc.coalesce(pc.if_else(_MORE(_, item, result), item, result), result, item)
    return result


def least(_: pa.DataType, *items: Datum) -> Datum:
    """The least item that is not NULL."""
    result = items[0]
    for item in items[1:]:
        result = pc.coalesce(pc.if_else(_MORE(_, result, item), item, result), result, item)
    return result
