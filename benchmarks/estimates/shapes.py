"""Queries over six streams: one key for all, a chain of keys, keys with a band, bands between keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from benchmarks.estimates.streams import NAMES

Sources = frozenset[str]


@dataclass(frozen=True)
class Tie:
    """What ties two streams: a column of both that is equal, or `x` of one within a band around that of the other."""

    left: str
    right: str
    column: str = ""
    low: float = 0.0
    high: float = 0.0

    @property
    def sql(self) -> str:
        """The condition as text."""
        if self.column:
            return f"{self.left}.{self.column} = {self.right}.{self.column}"
        return f"{self.left}.x - {self.right}.x BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True)
class Shape:
    """A query by its ties, which form a tree."""

    ties: tuple[Tie, ...]

    @property
    def sql(self) -> str:
        """The query as text."""
        where = " AND ".join(tie.sql for tie in self.ties)
        return f"SELECT A.k FROM {', '.join(NAMES)} WHERE {where} WINDOW 100 SECONDS"

    def within(self, sources: Sources) -> tuple[Tie, ...]:
        """The ties among these streams, of a key that several have only so many as hold them together."""
        found = [tie for tie in self.ties if not tie.column and {tie.left, tie.right} <= sources]
        for column, members in self._classes():
            inside = sorted(members & sources)
            found += [Tie(one, other, column) for one, other in pairwise(inside)]
        return tuple(found)

    def subsets(self) -> Iterator[Sources]:
        """The sets of two streams or more that ties hold together."""
        for size in range(2, len(NAMES) + 1):
            for names in combinations(NAMES, size):
                if len(self.within(frozenset(names))) == size - 1:
                    yield frozenset(names)

    def _classes(self) -> list[tuple[str, Sources]]:
        classes: list[tuple[str, Sources]] = []
        for tie in self.ties:
            if tie.column:
                here = [c for c in classes if c[0] == tie.column and c[1] & {tie.left, tie.right}]
                classes = [c for c in classes if c not in here]
                classes.append((tie.column, frozenset({tie.left, tie.right}).union(*(c[1] for c in here))))
        return classes


SHAPES: Mapping[str, Shape] = {
    "one key": Shape(tuple(Tie("A", other, "k") for other in "BCDEF")),
    "a chain of keys": Shape(
        (Tie("A", "B", "k"), Tie("B", "C", "m"), Tie("C", "D", "k"), Tie("D", "E", "m"), Tie("E", "F", "k"))
    ),
    "keys and a band": Shape(
        (
            Tie("A", "B", "k"), Tie("B", "C", "k"), Tie("C", "D", "m"), Tie("D", "E", "m"),
            Tie("E", "F", "", -0.001, 0.001),
        )
    ),
    "bands between keys": Shape(
        (
            Tie("A", "B", "k"), Tie("B", "C", "", -0.002, 0.002), Tie("C", "D", "m"),
            Tie("D", "E", "", -0.002, 0.001), Tie("E", "F", "k"),
        )
    ),
}  # fmt: skip
