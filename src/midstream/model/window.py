"""Windows and the clocks they are measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from typing_extensions import override

from midstream.model.codec import Text

WindowKind = Literal["range", "rows"]

SECOND = 1_000_000
"""Of event time, which is in microseconds everywhere."""

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


class Clock(str, Text):
    """What a window is measured on: event time in microseconds, or the arrivals of a `stream` that a window counts.

    A clock is its own text, so that it costs as a key what a text does.

    >>> EVENT_TIME, Clock("A"), Clock("A").stream, Clock.parse("rows:A") == Clock("A")
    ('ts', 'rows:A', 'A', True)
    """

    stream: str | None

    def __new__(cls, stream: str | None = None) -> Clock:
        """Make the clock that counts the arrivals of a stream, or that of event time without one."""
        made = super().__new__(cls, _TIME if stream is None else f"{_ROWS}{stream}")
        made.stream = stream
        return made

    def __getnewargs__(self) -> tuple[str | None]:  # type: ignore[override]
        return (self.stream,)

    @override
    @classmethod
    def parse(cls, text: str) -> Clock:
        if text == _TIME:
            return EVENT_TIME
        if not text.startswith(_ROWS):
            raise ValueError(f"there is no clock {text!r}")
        return Clock(text.removeprefix(_ROWS))


_TIME, _ROWS = "ts", "rows:"

EVENT_TIME = Clock()
"""The clock of event time, in microseconds."""
