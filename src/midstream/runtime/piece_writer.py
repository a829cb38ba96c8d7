"""Where the answers of a step go while it goes on, so that none of them is held as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from midstream.state.combinations import Combinations


@dataclass(frozen=True)
class PieceSizes:
    """How many results are held at a time where an answer may go out in pieces.

    A join holds so many `joined`, and gives up to twice as many back whole. So many are `evaluated` at a time: one part
    is written while the next is evaluated.
    """

    joined: int = 1 << 21
    evaluated: int = 1 << 19


SIZES = PieceSizes()

AgeRuns = Iterable[tuple[int, tuple[int, int]]]
"""Runs of results: how many, and between which ages all of them are."""


@dataclass(frozen=True)
class Pour:
    """Where an operator's output goes in pieces of at most so many.

    `take` takes a piece, whose times are after those of the pieces before; no ages where none are noted.
    """

    take: Callable[[Combinations, AgeRuns], None]
    most: int


class PieceWriter(Protocol):
    """Takes the answers of a lane in pieces, each in order of time, and none before the one before it.

    What it has taken counts once the step is committed, and not at all where the step is done again.
    """

    @property
    def queries(self) -> Set[str]:
        """The queries whose answers the writer takes: those that nothing reads within the job."""

    @property
    def sizes(self) -> PieceSizes:
        """Return the sizes of pieces."""

    def put(self, query: str, rows: pa.Table) -> None:
        """Take the next rows of a query's answer."""
