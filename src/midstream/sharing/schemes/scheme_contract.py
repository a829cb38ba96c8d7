"""The contract of a way of sharing: where a chain is cut, and how its results reach the queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

import midstream.sharing.schemes as room
from midstream.model.discovery import OpenSet
from midstream.sharing.chain_cost import ChainLoad, UnitCosts, edge_lengths

Delivery = Literal["prefix", "router", "partition"]
"""How results find their queries: by the slice they fall in, by a test against each query, or by a join for each part
of the streams and a test behind it.
"""


@dataclass(frozen=True)
class Figures:
    """What flows through a chain in a microsecond, by what it has counted, and what operations cost, in seconds.

    The `load` is of two streams; `others` are the rates of the further streams of a join tree.
    """

    load: ChainLoad
    units: UnitCosts
    others: tuple[float, ...] = ()

    def lengths(self, i: int) -> npt.NDArray[np.float64]:
        """Compute the lengths of the edges from the i-th window on as `edge_lengths` does, except for the routes.

        The dissertation's router holds a result against each window inside its slice; here a result is placed among
        them once, by one search, however many there are. Of n streams the results within a window w grow as w^(n - 1),
        and the rows of all n are purged from a slice, which costs a boundary for each.
        """
        load, units = self.load, self.units
        ends = np.array([0.0, *load.w]) / load.w[-1]
        within = 2 * load.lambda_a * load.lambda_b * load.s_join * load.w[-1] * ends ** (1 + len(self.others))
        placed = (within[i + 1 :] - within[i]) * (np.arange(len(load.w) - i) > 0)
        further = (units.purge + units.operator) * sum(self.others) + units.boundary * len(self.others) / 2
        lengths: npt.NDArray[np.float64] = edge_lengths(load, replace(units, route=0.0), i)
        lengths = lengths + units.route * placed + further
        return lengths

    def cost(self, cuts: Sequence[int]) -> float:
        """Sum the lengths of the path along these cuts."""
        nodes = [0, *(self.load.w.index(float(cut)) + 1 for cut in cuts)]
        return float(sum(self.lengths(i)[j - i - 1] for i, j in pairwise(nodes)))


class Scheme(ABC):
    """One way of sharing; found by discovery; no other file knows its name.

    A scheme decides before a step where chains are cut, from what it is given alone, so that a step that is done again
    decides the same. Whatever it decides, every answer is the same; `midstream.testing.check_scheme` holds it to that.
    """

    name: ClassVar[str]
    shares: ClassVar[bool] = True
    """Whether queries that begin join a chain; otherwise each has a plan and states of its own."""
    delivery: ClassVar[Delivery] = "prefix"
    filtered: ClassVar[bool] = True
    """Whether rows are kept by their lineage; otherwise every row is kept for the widest window."""

    @property
    def partitions(self) -> bool:
        """Whether a chain runs as several joins, one for each partition of its streams, instead of as one plan."""
        return self.delivery == "partition"

    @abstractmethod
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        """Choose the ends of the chain's slices, ascending, from the distinct windows; none for a single slice.

        `figures` are None while nothing is known of the streams, `present` are the cuts up to now.
        """


_SET = OpenSet(room, Scheme, "midstream.schemes", "unknown sharing", place="sharing")
schemes, scheme = _SET.all, _SET.named
