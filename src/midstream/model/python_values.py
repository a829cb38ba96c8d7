"""Values of Arrow as Python has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

BEYOND_PYTHON = (ArithmeticError, ValueError, LookupError)
"""What is raised for values that Python has not: by its own times, by those of pandas, and by its zones."""


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Convert values to Python; those that Python lacks (far times, unknown zones, damaged texts) to Arrow's text.

    >>> python_values(pa.array([2**62], pa.timestamp("s"))), python_values(pa.array([b"a"]))
    (['<value out of range: 4611686018427387904>'], [b'a'])
    """
    try:
        values: list[Any] = column.to_pylist()
    except BEYOND_PYTHON:
        if len(column) == 1:
            return [column.to_string(skip_new_lines=True).strip("[]")]
        half = len(column) // 2
        return python_values(column.slice(0, half)) + python_values(column.slice(half))
    return values
