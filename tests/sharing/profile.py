"""How many cases are drawn: in a soak forty times as many, and new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.drawing import PROFILE, drawing

__all__ = ["PROFILE", "many"]


def many(cases: int) -> Callable[[Any], Any]:
    """Draw so many cases in `make test`."""
    return drawing({"soak": 40 * cases, "quick": cases // 4}.get(PROFILE, cases))
