"""Tidy tables: made from observations, read by column and case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DIGITS = 6
"""Significant digits of a number in a figure's data; more would only swell the file."""


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Build a table of observations; all have the same fields, and floats keep `DIGITS` significant digits.

    >>> table([{"case": "MS", "W": 0.1 + 0.2}]).to_pylist()
    [{'case': 'MS', 'W': 0.3}]
    """
    return pa.Table.from_pylist([{name: _rounded(value) for name, value in row.items()} for row in rows])


def column(data: pa.Table, name: str, **where: Any) -> npt.NDArray[Any]:
    """Select a column of the rows in which other columns have these values.

    >>> data = table([{"case": "MS", "W": 1}, {"case": "PT", "W": 2}])
    >>> column(data, "W", case="PT").tolist()
    [2]
    """
    keep = np.ones(data.num_rows, np.bool_)
    for other, value in where.items():
        keep &= np.array([found == value for found in data.column(other).to_pylist()], np.bool_)
    values: npt.NDArray[Any] = data.column(name).to_numpy()
    return values[keep]


def cases(data: pa.Table, name: str) -> list[Any]:
    """List the distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(data.column(name).to_pylist()))


def _rounded(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
