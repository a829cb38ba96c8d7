"""Exact counters of an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from operator import attrgetter


@dataclass(frozen=True)
class Counters:
    """What one operator, query or engine did: rows and candidate pairs, never time.

    `comparisons` counts candidate pairs: every live pair for a nested loop, pairs of equal key for a hash join, pairs
    in the searched range for a band join. The papers' "CPU cost" is `comparisons`; their "memory", the rows alive in
    state, is not a counter: it is computed from a manifest.

    >>> Counters(rows_in=1) + Counters(rows_in=2, purged=1)
    Counters(rows_in=3, comparisons=0, predicates=0, rows_out=0, inserted=0, purged=1, moved=0, hops=0)
    """

    rows_in: int = 0
    comparisons: int = 0
    predicates: int = 0
    rows_out: int = 0
    inserted: int = 0
    purged: int = 0
    moved: int = 0
    hops: int = 0

    @staticmethod
    def sum(many: Iterable[Counters]) -> Counters:
        """Add up counters."""
        return Counters(*map(sum, zip(*map(_VALUES, many), strict=True)))

    @staticmethod
    def of(values: Iterable[int]) -> Counters:
        """Make counters of the first values, the others zero; faster than a call with many of them."""
        made = object.__new__(Counters)
        made.__dict__.update(_ZEROS)
        made.__dict__.update(zip(_ZEROS, values, strict=False))
        return made

    @property
    def values(self) -> tuple[int, ...]:
        """All counts, in the order of the fields."""
        found: tuple[int, ...] = _VALUES(self)
        return found

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.rows_in + other.rows_in,
            self.comparisons + other.comparisons,
            self.predicates + other.predicates,
            self.rows_out + other.rows_out,
            self.inserted + other.inserted,
            self.purged + other.purged,
            self.moved + other.moved,
            self.hops + other.hops,
        )


NOTHING = Counters()
"""What is counted where nothing is done."""

_VALUES = attrgetter(*[field.name for field in fields(Counters)])

_ZEROS = dict.fromkeys([field.name for field in fields(Counters)], 0)
