"""Where the answers of a step go while it goes on, so that none of them is held as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Protocol

import pyarrow as pa

from midstream.state.combinations import Combinations

MOST = 1 << 21
"""So many results a join holds at a time where they can go out in pieces; it gives up to twice as many back whole."""

PART = 1 << 19
"""So many results are evaluated at a time where the answer may go out in pieces: one part is written while the next is
evaluated.
"""

AgeRuns = Iterable[tuple[int, tuple[int, int]]]
"""Runs of results: how many, and between which ages all of them are."""

Pour = Callable[[Combinations, AgeRuns], None]
"""Takes a piece of an operator's output, whose times are after those of the pieces before; no ages where none are
noted.
"""


class PieceWriter(Protocol):
    """Takes the answers of a lane in pieces, each in order of time, and none before the one before it.

    What it has taken counts once the step is committed, and not at all where the step is done again.
    """

    @property
    def queries(self) -> Set[str]:
        """The queries whose answers the writer takes: those that nothing reads within the job."""

    def put(self, query: str, rows: pa.Table) -> None:
        """Take the next rows of a query's answer."""
