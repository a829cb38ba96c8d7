"""Where functions fail that do not need all of their arguments: AND, OR, CASE and COALESCE.

Each is given its arguments' values, and where those could not be evaluated; None for nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, Mask, valid


def is_null(datum: Datum) -> Mask | None:
    """Where a datum is NULL; None where it nowhere is."""
    there = valid(datum)
    return None if there is None else ~there


def either(*masks: Mask | None) -> Mask | None:
    """Where any of the masks is true; None, as each of them may be, for nowhere."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    return found


Checked = Sequence[tuple[Datum, Mask | None]]


def _decided_by(value: bool) -> Callable[[Checked], Mask | None]:
    """Where AND (decided by FALSE) or OR (by TRUE) fails: one side does, and the other does not decide."""

    def failed(sides: Checked) -> Mask | None:
        masks = [mask for _, mask in sides]
        found = either(*masks)
        for datum, mask in sides:
            decides = known_as(datum, value) if mask is None else known_as(datum, value) & ~mask
            found = None if found is None else found & ~decides
        return found

    return failed


def known_as(datum: Datum, value: bool) -> Mask:
    """Where a condition is this very value, and not NULL."""
    if isinstance(datum, pa.Scalar):
        return np.asarray(datum.as_py() is value)
    return np.asarray(pc.fill_null(pc.equal(datum, value), False))


def _case_fails(parts: Checked) -> Mask | None:
    """A CASE fails where a condition that is asked does, or the value that is taken."""
    open_, failed = np.asarray(True), np.asarray(False)
    for (condition, asked), (_, taken) in zip(parts[0:-1:2], parts[1:-1:2], strict=True):
        asked, taken = (np.asarray(False) if mask is None else mask for mask in (asked, taken))
        hit = known_as(condition, True) & ~asked
        failed = failed | (open_ & (asked | (hit & taken)))
        open_ = open_ & ~hit & ~asked
    last = parts[-1][1]
    return failed if last is None else failed | (open_ & last)


def _coalesce_fails(parts: Checked) -> Mask | None:
    """COALESCE fails where a value does that comes before the first one which is not NULL, or is that one."""
    open_, failed = np.asarray(True), np.asarray(False)
    for datum, mask in parts:
        if mask is not None:
            failed, open_ = failed | (open_ & mask), open_ & ~mask
        nothing = is_null(datum)
        open_ = open_ & (np.asarray(False) if nothing is None else nothing)
    return failed


LAZY: dict[str, Callable[[Checked], Mask | None]] = {
    "and": _decided_by(False),
    "or": _decided_by(True),
    "case": _case_fails,
    "coalesce": _coalesce_fails,
}
"""Functions that do not need all of their arguments, and where they fail."""
