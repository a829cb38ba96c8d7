"""Between two sides of a join: which index serves, and which predicates are left over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from midstream.expr.expression import Expression, conjunction, infix
from midstream.expr.functions import asks_user
from midstream.logical.query import BandPredicate, EquiPredicate, Predicate, Query
from midstream.plan.key_classes import KeyClass, key_classes
from midstream.runtime.distribution import Distribution
from midstream.state.keys import is_exact
from midstream.state.specs import Index


@dataclass(frozen=True)
class JoinCondition:
    """How combinations of two disjoint sets of sources find each other.

    `hash`: equal codes of `left_key` and `right_key`; `verify` holds the equalities that codes alone cannot prove.
    `band`: `low <= left - right <= high` on the only key of each side. `scan`: every pair.
    `residual` are the predicates that decide the pairs found.
    """

    index: Index
    left_key: tuple[Expression, ...]
    right_key: tuple[Expression, ...]
    low: float | None
    high: float | None
    verify: tuple[Expression, ...]
    residual: tuple[Expression, ...]

    def distribution(self) -> Distribution:
        """Which rows of the two sides must lie in one lane: those of equal key; without a key all of them."""
        if self.index != "hash":
            return Distribution(together=True)
        return Distribution((tuple(zip(self.left_key, self.right_key, strict=True)),))

    def describe(self) -> str:
        """Describe the index, the keys and the conditions, for `explain --verbose`."""
        sign = "=" if self.index == "hash" else "~"
        pairs = ", ".join(f"{infix(a)} {sign} {infix(b)}" for a, b in zip(self.left_key, self.right_key, strict=True))
        rest = f" where {conjunction(self.residual)}" if self.residual else ""
        return f"{self.index}{f' {pairs}' if pairs else ''}{rest}"

    def title(self) -> str:
        """Write the join with its conditions as SQL does; a band is named by its keys."""
        sign = "=" if self.index == "hash" else "close to"
        keys = [f"{infix(a)} {sign} {infix(b)}" for a, b in zip(self.left_key, self.right_key, strict=True)]
        rest = [conjunction(self.residual)] if self.residual else []
        return f"join on {' and '.join([*keys, *rest])}" if keys or rest else "cross join"


def join_condition(
    query: Query, left: frozenset[str], right: frozenset[str], classes: Sequence[KeyClass] | None = None
) -> JoinCondition:
    """The join condition between two sets of sources: a hash key per shared key class, the best band, or a scan.

    `classes` are the query's key classes, where a caller knows them.
    """
    both = left | right
    crossing = [
        _oriented(p, left)
        for p in query.predicates
        if not isinstance(p, EquiPredicate) and (tied := p.aliases()) <= both and not (tied <= left or tied <= right)
    ]
    # A user's predicate may take long: it is asked about the pairs that all other predicates leave.
    residual = tuple(sorted((p.expression for p in crossing), key=asks_user))
    classes = key_classes(query) if classes is None else classes
    shared = [c for c in classes if c.within(left) and c.within(right)]
    if shared:
        left_key = tuple(c.within(left)[0] for c in shared)
        right_key = tuple(c.within(right)[0] for c in shared)
        doubled = [c.equal(m, c.within(left)[0]) for c in shared for m in c.doubles(right)]
        doubled += [c.equal(m, c.within(right)[0]) for c in shared for m in c.doubles(left)]
        equalities = (c.equal(a, b) for c, a, b in zip(shared, left_key, right_key, strict=True))
        verify = () if is_exact([e.type for e in left_key]) else tuple(equalities)
        return JoinCondition("hash", left_key, right_key, None, None, verify, (*doubled, *residual))
    bands = [p for p in crossing if isinstance(p, BandPredicate)]
    if bands:
        best = min(bands, key=_width)
        return JoinCondition("band", (best.left,), (best.right,), best.low, best.high, (), residual)
    return JoinCondition("scan", (), (), None, None, (), residual)


def _oriented(predicate: Predicate, left: frozenset[str]) -> Predicate:
    if isinstance(predicate, BandPredicate) and not predicate.left.aliases() <= left:
        low, high = _negated(predicate.high), _negated(predicate.low)
        return BandPredicate(predicate.expression, predicate.right, predicate.left, low, high)
    return predicate


def _negated(bound: float | None) -> float | None:
    return None if bound is None else -bound


def _width(band: BandPredicate) -> float:
    if band.low is None or band.high is None:
        return math.inf
    return band.high - band.low
