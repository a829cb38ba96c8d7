"""What one join of a plan takes, and which joins a plan is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Common, Form, Join, Leaf, MultiJoin, Plan


class WorkShare(NamedTuple):
    """A part of a join's work: nanoseconds a second, proportional to the combinations of `rows` that are made.

    `joined` are the sources among them whose matches count: of a nested loop's pairs, those that each side has joined.
    """

    nanoseconds: float
    rows: Sources
    joined: Sources


class JoinCost(NamedTuple):
    """What one join of a plan takes, with the state of its output: `sources` are those that it has brought together."""

    sources: Sources
    shares: tuple[WorkShare, ...]
    memory: float

    @property
    def work(self) -> float:
        """Nanoseconds a second over all shares."""
        return sum([share.nanoseconds for share in self.shares])


class JoinMade(NamedTuple):
    """A join that plans make, by its sides; a source's base state has no right side.

    `start` is the source whose new rows make a hop, which an eddy has `routed`; no hop has none. The output of an
    `inner` join is a state.
    """

    left: Sources
    right: Sources = frozenset()
    start: str = ""
    routed: bool = False
    inner: bool = False


def joins_made(plan: Plan, kept: frozenset[Sources], routed: bool) -> list[JoinMade]:
    """List the joins of a plan, children first, except those whose states other queries keep."""
    whole, found, waiting = frozenset(plan.aliases()), list[JoinMade](), list[tuple[Plan, Sources]]()
    waiting.append((plan, whole))
    while waiting:
        here, sources = waiting.pop()
        if sources in kept:
            continue
        if isinstance(here, Join):
            right = frozenset(here.right.aliases())
            left = sources - right
            found.append(JoinMade(left, right, inner=sources is not whole))
            waiting += (here.left, left), (here.right, right)
        elif isinstance(here, Leaf):
            found.append(JoinMade(sources))
        elif isinstance(here, Form):
            waiting.append((here.tree, sources))
        elif isinstance(here, Common | MultiJoin):
            found += reversed([*_bases_and_hops(here, kept, routed)])
    return found[::-1]


def _bases_and_hops(plan: Plan, kept: frozenset[Sources], routed: bool) -> Iterator[JoinMade]:
    bases = (frozenset({alias}) for alias in plan.aliases())
    yield from (JoinMade(base) for base in bases if base not in kept)
    for start, order in plan.orders if isinstance(plan, MultiJoin) else ():
        here = frozenset({start})
        for alias in order:
            yield JoinMade(here, frozenset({alias}), start, routed)
            here |= {alias}


@dataclass(frozen=True)
class JoinCosts:
    """What joins take, by one figure of the estimates."""

    units: JoinUnitCosts
    sizes: Sizes

    def of(self, join: JoinMade) -> JoinCost:
        """Compute the cost of a join."""
        if not join.right:
            return self._base(join.left)
        return self._hop(join) if join.start else self._join(join)

    def _base(self, one: Sources) -> JoinCost:
        units = self.units
        inserted = _share(units.insert * self.sizes.rate(one), one)
        return JoinCost(one, (inserted,), units.bytes_of(self.sizes.rows(one), 1.0))

    def _join(self, join: JoinMade) -> JoinCost:
        units, sizes, together = self.units, self.sizes, join.left | join.right
        probes = [_share(units.probe * sizes.rate(side), side) for side in (join.left, join.right)]
        made = sizes.rate(together) * (units.result + units.insert * join.inner)
        compared = self._compared(sizes.comparisons(join.left, join.right), join)
        memory = units.bytes_of(sizes.rows(together), float(len(together))) if join.inner else 0.0
        return JoinCost(together, (*probes, _share(made, together), compared, self._at_every_step), memory)

    def _hop(self, join: JoinMade) -> JoinCost:
        # What the new rows have met so far probes the next base state.
        units, sizes, there = self.units, self.sizes, join.left | join.right
        (alias,) = join.right
        probes = (units.probe + units.route * join.routed) * sizes.rate_of_new(join.start, join.left)
        made = units.result * sizes.rate_of_new(join.start, there)
        compared = self._compared(sizes.hop(join.start, join.left, alias), join)
        shares = _share(probes, join.left), _share(made, there), compared, self._at_every_step
        return JoinCost(there, shares, 0.0)

    def _compared(self, comparisons: float, join: JoinMade) -> WorkShare:
        both, nested = join.left | join.right, self.sizes.residual(join.left, join.right) is None
        sides = (side for side in (join.left, join.right) if len(side) > 1)
        joined = frozenset[str]().union(*sides) if nested else both
        return WorkShare(self.units.comparison * comparisons, both, joined)

    @property
    def _at_every_step(self) -> WorkShare:
        return _share(self.units.operator_step * self.sizes.steps, frozenset())


def _share(nanoseconds: float, rows: Sources) -> WorkShare:
    return WorkShare(nanoseconds, rows, rows if len(rows) > 1 else frozenset())
