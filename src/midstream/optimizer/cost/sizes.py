"""What the joins of any plan do, from the sizes of the joins of subsets alone.

Whatever tree makes it, the join of a set of sources has one size. A plan's figures are taken from these sizes and from
nothing that depends on the way there, so that the best plan of a set of sources is made of best plans of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, prod
from typing import Any, Literal

from midstream.optimizer.bounded import Bounded
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Condition, Sources

Bound = Literal["value", "low", "high"]


@dataclass(frozen=True)
class Sizes:
    """Rows alive in the join of a set of sources, and the flows that follow from them; all flows are for a second.

    `bound` says which of an estimate's figures count. Each living combination goes with the first of its rows, and the
    state stays as it is: so a state is renewed at the sum of its sources' shares of new rows.
    """

    estimate: Estimate
    bound: Bound = "value"
    _rows: dict[Sources, Bounded] = field(default_factory=dict, repr=False, compare=False)
    _bounded: dict[Sources, float] = field(default_factory=dict, repr=False, compare=False)
    _residuals: dict[tuple[Sources, Sources], float | None] = field(default_factory=dict, repr=False, compare=False)
    _renewals: dict[Sources, float] = field(default_factory=dict, repr=False, compare=False)
    _bounds: dict[Bound, Sizes] = field(default_factory=dict, repr=False, compare=False)
    weighed: dict[Any, dict[Bound, Any]] = field(default_factory=dict, repr=False, compare=False)  # by cost model

    @staticmethod
    def of(given: Estimate | Sizes) -> Sizes:
        """Wrap an estimate in sizes; given sizes are used again, so that each figure is looked up once."""
        return given if isinstance(given, Sizes) else Sizes(given)

    @property
    def steps(self) -> float:
        """Steps in a second of event time."""
        step = self.estimate.statistics.step
        return 1 / step if step > 0 else 0.0

    def rows(self, sources: Sources) -> float:
        """Return the rows alive in the join of these sources."""
        if sources not in self._bounded:
            if sources not in self._rows:
                self._rows[sources] = self.estimate.rows(sources)
            self._bounded[sources] = getattr(self._rows[sources], self.bound)
        return self._bounded[sources]

    @property
    def are_exact(self) -> bool:
        """Whether all sizes that were looked up are exact."""
        return all(found.low == found.value == found.high for found in self._rows.values())

    def rate(self, sources: Sources) -> float:
        """Compute how many combinations of these sources are made."""
        return self.rows(sources) * self._renewed(sources)

    def rate_of_new(self, start: str, sources: Sources) -> float:
        """Compute how many combinations of these sources a new row of one of them makes."""
        return self.rows(sources) * self.renewal[start]

    def comparisons(self, left: Sources, right: Sources) -> float:
        """Compute the candidate pairs that a join of two sides examines: those its index lets through."""
        return self.examined(left, right) * self._renewed(left | right)

    def hop(self, start: str, here: Sources, alias: str) -> float:
        """Compute the candidate pairs that one source's new rows examine in a base state, once they have met the
        others."""
        return self.examined(here, frozenset({alias})) * self.renewal[start]

    def examined(self, left: Sources, right: Sources) -> float:
        """Compute how many of the living pairs the index lets through."""
        pairs, residual = self.rows(left) * self.rows(right), self.residual(left, right)
        return pairs if residual is None else min(self.rows(left | right) / residual, pairs)

    def residual(self, left: Sources, right: Sources) -> float | None:
        """Compute the share of the pairs let through that passes the other conditions; None without an index.

        An index is built on all keys that tie both sides, else on a band.
        """
        if (left, right) not in self._residuals:
            self._residuals[left, right] = self._residual(left, right)
        return self._residuals[left, right]

    def by(self, bound: Bound) -> Sizes:
        """Return the sizes by another figure of the estimates."""
        if bound not in self._bounds:
            self._bounds[bound] = replace(self, bound=bound, _bounded={}, _bounds={})
        return self._bounds[bound]

    def _residual(self, left: Sources, right: Sources) -> float | None:
        crossing = [c for c in self.estimate.statistics.conditions if c.crosses(left, right)]
        others = [c for c in crossing if c.kind != "hash"]
        if len(others) == len(crossing):
            band = next((c for c in others if c.kind == "band"), None)
            if band is None:
                return None
            others.remove(band)
        return prod(self.passing[c] for c in others)

    def eddy_order(self, start: str, sources: Iterable[str]) -> tuple[str, ...]:
        """Order sources as an eddy that has learnt visits them: the fewest matches first, tied ones if possible."""
        here, left, order = frozenset({start}), [alias for alias in sources if alias != start], list[str]()
        while left:
            tied = [alias for alias in left if self._ties(here, alias)] or left
            order.append(min(tied, key=lambda alias: (self.rows(here | {alias}), alias)))
            left.remove(order[-1])
            here |= {order[-1]}
        return tuple(order)

    @cached_property
    def renewal(self) -> Mapping[str, float]:
        """The share of each source's rows that is new in a second."""
        found = self.estimate.statistics.sources.items()
        return {alias: source.rate / source.rows if source.rows else 0.0 for alias, source in found}

    @cached_property
    def passing(self) -> Mapping[Condition, float]:
        """The share of pairs that satisfies each condition that is no key, where it is not the index."""
        conditions = self.estimate.statistics.conditions
        found = {}
        for condition in conditions:
            if condition.kind != "hash":
                one = frozenset({min(condition.sources)})
                others = condition.sources - one
                together = [c for c in conditions if c.crosses(one, others)]
                share = self.estimate.passed(one, others)
                if all(c.kind != "hash" for c in together):
                    share *= self.estimate.matched(one, others)
                beside = sum(c.kind != "hash" for c in together)
                found[condition] = max(share, 1e-12) ** (1 / beside) if beside else 1.0
        return found

    def _renewed(self, sources: Sources) -> float:
        if sources not in self._renewals:
            # Exactly rounded: a set has no order, and the last bit of its sum must not depend on one.
            self._renewals[sources] = fsum([self.renewal[alias] for alias in sources])
        return self._renewals[sources]

    def _ties(self, here: Sources, alias: str) -> bool:
        return any(alias in c.sources and c.sources & here for c in self.estimate.statistics.conditions)
