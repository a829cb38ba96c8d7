"""Windows and the clocks they are measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WindowKind = Literal["range", "rows"]

EVENT_TIME = "ts"
"""The clock of event time, in microseconds."""

FOREVER = 2**63 - 1
"""The end of a lifetime that nothing limits."""


@dataclass(frozen=True)
class Window:
    """What part of a stream's past a query looks at: `RANGE` microseconds or `ROWS` rows.

    A window is inclusive: a row of age exactly `size` still counts (CQL; Wang uses a strict bound).

    >>> Window("rows", 3)
    Window(kind='rows', size=3)
    """

    kind: WindowKind
    size: int


def row_clock(stream: str) -> str:
    """The clock that counts the arrivals of a stream: what a `ROWS` window is measured on.

    >>> row_clock("A")
    'rows:A'
    """
    return f"rows:{stream}"
