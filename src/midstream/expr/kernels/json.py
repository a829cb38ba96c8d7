"""What stands in JSON texts, by path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from midstream.expr.kernels.datum import Datum
from midstream.expr.kernels.text import each_different

_STEP = re.compile(r'\."((?:[^"\\]|\\.)*)"|\[(-?\d+)\]')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NOTHING = object()


def path_of(steps: list[str | int]) -> str:
    """A path of keys of objects and places in arrays.

    >>> path_of(["a", 0])
    '$."a"[0]'
    """
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{json.dumps(step)}" for step in steps)


def _steps(path: str) -> list[str | int]:
    return [int(found[2]) if found[2] else json.loads(f'"{found[1]}"') for found in _STEP.finditer(path)]


def _at(text: str, steps: list[str | int]) -> Any:
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            _written(value).encode()  # Half of a pair is not a character: a UnicodeEncodeError, which is a ValueError.
    except (ValueError, RecursionError):
        return _NOTHING
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, _NOTHING) if isinstance(value, dict) else _NOTHING
        else:
            inside = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if inside else _NOTHING
    return value


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _as_text(value: Any) -> str | None:
    if value is None or value is _NOTHING:
        return None
    return value if isinstance(value, str) else _written(value)


def _as_json(value: Any) -> str | None:
    return None if value is _NOTHING else _written(value)


def _extracted(shown: Callable[[Any], str | None]) -> Callable[..., Datum]:
    def kernel(type: pa.DataType, text: Datum, path: pa.Scalar) -> Datum:
        steps = _steps(path.as_py())
        return each_different(lambda one: None if one is None else shown(_at(one, steps)))(type, text)

    return kernel


extract_string = _extracted(_as_text)
"""Read the value at a path of a JSON text, a string without its quotes; NULL if there is none, or no JSON."""

extract = _extracted(_as_json)
"""The same as JSON, strings in quotes and null as it is written."""
