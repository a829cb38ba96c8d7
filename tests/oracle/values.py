"""When a value of ours is DuckDB's."""

from __future__ import annotations

import datetime
import math
from typing import Any


def agree(one: Any, other: Any, *, relative: float = 1e-9) -> bool:
    """Whether two values are the same: NULL is NULL only, NaN is NaN, a date is its midnight, and sums may differ
    in their last digits.
    """
    if one is None or other is None:
        return one is other
    if isinstance(one, float) or isinstance(other, float):
        a, b = float(one), float(other)
        close = math.isclose(a, b, rel_tol=relative, abs_tol=relative / 1000)
        return close or (math.isnan(a) and math.isnan(b))
    if isinstance(one, datetime.date) and isinstance(other, datetime.date):
        return _moment(one) == _moment(other)
    return bool(one == other)


def _moment(value: datetime.date) -> datetime.datetime:
    return value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
