"""The contract of a way of sharing: where a chain is cut, and how its results reach the queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from midstream.sharing.costs.chain import ChainLoad, UnitCosts

Delivery = Literal["prefix", "router", "partition"]
"""How results find their queries: by the slice they fall in, by a test against each query, or by a join for each part
of the streams and a test behind it.
"""


@dataclass(frozen=True)
class Figures:
    """What flows through a chain in a microsecond, by what it has counted, and what operations cost, in seconds."""

    load: ChainLoad
    units: UnitCosts


class Scheme(ABC):
    """One way of sharing; found by discovery, known to nobody by name."""

    name: ClassVar[str]
    delivery: ClassVar[Delivery] = "prefix"
    filtered: ClassVar[bool] = True
    """Whether rows are kept by their lineage; otherwise every row is kept for the widest window."""

    @abstractmethod
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        """The ends of the chain's slices, ascending, out of the distinct windows; none where it is one slice.

        `figures` are None while nothing is known of the streams, `present` are the cuts up to now.
        """
