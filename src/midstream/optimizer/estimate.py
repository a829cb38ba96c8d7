"""Sizes, rates and comparisons of any plan of a query, from what its running plan shows.

Join by join as in Zhu §5, with one difference: a state over several streams holds |S_A||S_B| sigma_AB rows, not
lambda_AB W (see `costs.zhu.joined_state_size`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from midstream.optimizer.bounded import Bounded, Origin
from midstream.optimizer.statistics import Condition, Sources, Statistics, geometric_mean
from midstream.plan.tree import Common, Eddy, Form, Join, Leaf, MultiJoin, Plan

Between = tuple[str, str]
"""Two sources, in order of name."""


@dataclass(frozen=True)
class Flow:
    """The output of a subplan: combinations alive, and combinations made in a second of event time."""

    sources: Sources
    rows: float
    rate: float


@dataclass(frozen=True)
class Joining:
    """One join of a plan, or one hop of a probing order.

    `pairs`: comparisons to make all its living combinations from empty states, at once (Zhu, Equation 1 with T_j = 1,
    T_s = 0) or one after the other. `running`: comparisons a second (Equation 5). `keyed` says whether it joins by
    keys, `kept` whether its output can be a state.
    """

    left: Flow
    right: Flow
    output: Flow
    pairs: float
    running: float
    keyed: bool
    kept: bool = True


@dataclass(frozen=True)
class Estimate:
    """What plans of a query would hold and do: the one place of sizes.

    What the running plan keeps is counted; of joins that no plan has run, samples tell. Without samples their
    selectivities are taken from joins that used the same condition between the same sources, else anywhere; else keys
    are taken to be unique and other predicates to hold.
    """

    statistics: Statistics

    def rows(self, sources: Sources) -> Bounded:
        """Estimate the living combinations of any sources; those that nothing ties together are all combined.

        >>> from midstream.optimizer.statistics import SourceStatistics
        >>> rows = {"A": SourceStatistics(1, 10, 10), "B": SourceStatistics(2, 20, 10)}
        >>> Estimate(Statistics(rows)).rows(frozenset("AB")).value
        200
        """
        if sources not in self._known:
            pieces = self._connected(sources)
            alone = len(pieces) == 1
            self._known[sources] = self._size(sources) if alone else Bounded.product(map(self.rows, pieces))
        return self._known[sources]

    def joinings(self, plan: Plan) -> list[Joining]:
        """List the joins of a plan, children first."""
        match plan:
            case Join():
                return self._tree(plan)[1]
            case Form(_, tree):
                return self._tree(tree)[1]
            case MultiJoin(orders):
                return [hop for start, order in orders for hop in self.hops(start, order)]
            case Eddy(sources):
                return [hop for start in sources for hop in self.hops(start, self._order(start, sources))]
        return []

    def matched(self, left: Sources, right: Sources) -> float:
        """Estimate the share of pairs between two sets of sources that the index of their join lets through."""
        sampled = self._sampled(left, right)
        if sampled is not None:
            return sampled[0]
        share = 1.0
        for condition in self._index(left, right):
            pairs = [self._share(condition, a, b) for a in condition.sources & left for b in condition.sources & right]
            # A combination meets its key's partners as its least promising source does.
            share *= min(pairs, default=self._anywhere.get(condition, 1.0))
        return min(share, 1.0)

    def passed(self, left: Sources, right: Sources) -> float:
        """Estimate the share of compared pairs that satisfy what the index does not see: predicates and windows."""
        sampled = self._sampled(left, right)
        if sampled is not None:
            return sampled[1]
        exact = self._passed.get(frozenset({left, right}))
        if exact is not None:
            return exact
        share = 1.0
        for condition in self.statistics.conditions:
            if condition.kind != "hash" and condition.crosses(left, right):
                used = [j.passed for j in self.statistics.joins if condition.crosses(j.left, j.right)]
                share *= geometric_mean(used) if used else 1.0
        return share

    def _tree(self, plan: Plan) -> tuple[Flow, list[Joining]]:
        if isinstance(plan, Join):
            (left, first), (right, second) = self._tree(plan.left), self._tree(plan.right)
            last = self.joining(left, right)
            return last.output, [*first, *second, last]
        assert isinstance(plan, Leaf | Common)
        here, *others = [self.source(alias) for alias in plan.aliases()]
        for other in others:
            here = self.joining(here, other).output
        return here, []

    def source(self, alias: str) -> Flow:
        """Return the rows of one source."""
        source = self.statistics.sources[alias]
        return Flow(frozenset({alias}), source.rows, source.rate)

    def joining(self, left: Flow, right: Flow) -> Joining:
        """Estimate the join of two subplans."""
        together = left.sources | right.sources
        share = self.matched(left.sources, right.sources)
        met = share * self.passed(left.sources, right.sources)
        probes = left.rate * right.rows + right.rate * left.rows
        pairs = left.rows * right.rows
        output = Flow(together, self.statistics.states.get(together, pairs * met), probes * met)
        return Joining(left, right, output, pairs * share, probes * share, self._is_keyed(left.sources, right.sources))

    def hops(self, start: str, order: Iterable[str]) -> Iterator[Joining]:
        """Estimate the hops of one source's new rows: what they have met so far probes the next base state."""
        here = self.source(start)
        for depth, alias in enumerate(order, 1):
            there = self.source(alias)
            share = self.matched(here.sources, there.sources)
            met = share * self.passed(here.sources, there.sources)
            running = here.rate * there.rows * share
            output = Flow(here.sources | there.sources, 0.0, here.rate * there.rows * met)
            # From empty states on, at time t the d-th hop meets (t / W)^d of what it meets in the end.
            pairs, keyed = running * self.statistics.window / (depth + 1), self._is_keyed(here.sources, there.sources)
            yield Joining(here, there, output, pairs, running, keyed, kept=False)
            here = output

    def _size(self, sources: Sources) -> Bounded:
        if len(sources) == 1:
            return Bounded.exactly(self.statistics.sources[next(iter(sources))].rows)
        if sources in self.statistics.states:
            return Bounded.exactly(self.statistics.states[sources])
        if self.statistics.samples is not None:
            return self.statistics.samples.rows(sources)
        return self._guessed(sources)

    def _guessed(self, sources: Sources) -> Bounded:
        # Source by source from the greatest state that is counted; between nothing and everything.
        counted = [state for state in self.statistics.states if state < sources] or [frozenset({min(sources)})]
        start = max(counted, key=lambda state: (len(state), sorted(state)))
        here = Flow(start, self.rows(start).value, 0.0)
        while here.sources != sources:
            left = sorted(sources - here.sources)
            following = next((alias for alias in left if self._ties(here.sources, alias)), left[0])
            here = self.joining(here, self.source(following)).output
        most = prod(self.statistics.sources[alias].rows for alias in sorted(sources))
        return Bounded(here.rows, 0.0, max(most, here.rows), Origin.GUESSED)

    def _ties(self, sources: Sources, alias: str) -> bool:
        return any(condition.crosses(sources, frozenset({alias})) for condition in self.statistics.conditions)

    def _connected(self, sources: Sources) -> list[Sources]:
        if any(one.kind == "hash" and sources <= one.sources for one in self.statistics.conditions):
            return [sources]
        pieces = [frozenset({alias}) for alias in sorted(sources)]
        for condition in self.statistics.conditions:
            tied = condition.sources & sources if condition.kind == "hash" else condition.sources
            if tied <= sources:
                touched = [piece for piece in pieces if piece & tied]
                others = [piece for piece in pieces if not piece & tied]
                pieces = [frozenset[str]().union(*touched), *others] if touched else others
        return sorted(pieces, key=sorted)

    def _sampled(self, left: Sources, right: Sources) -> tuple[float, float] | None:
        # The shares that the index lets through, and that satisfy the rest; None without samples.
        samples = self.statistics.samples
        if samples is None:
            return None
        pairs = self.rows(left).value * self.rows(right).value
        compared = samples.compared(left, right) if self._index(left, right) else pairs
        found = self.rows(left | right).value
        matched = min(max(compared, found) / pairs, 1.0) if pairs else 1.0
        return matched, min(found / (pairs * matched), 1.0) if pairs and matched else 1.0

    def _order(self, start: str, sources: tuple[str, ...]) -> tuple[str, ...]:
        # An eddy that has learnt sends rows where they meet least.
        order: list[str] = []
        left = [alias for alias in sources if alias != start]
        while left:
            here = frozenset({start, *order})
            order.append(min(left, key=lambda a: self.matched(here, frozenset({a})) * self.source(a).rows))
            left.remove(order[-1])
        return tuple(order)

    def _index(self, left: Sources, right: Sources) -> list[Condition]:
        # An index is built on all key classes that tie both sides, else on a band, else on nothing.
        crossing = [c for c in self.statistics.conditions if c.crosses(left, right)]
        return [c for c in crossing if c.kind == "hash"] or [c for c in crossing if c.kind == "band"][:1]

    def _is_keyed(self, left: Sources, right: Sources) -> bool:
        return any(condition.kind == "hash" for condition in self._index(left, right))

    def _share(self, condition: Condition, one: str, other: str) -> float:
        between = self._between.get(condition, {}).get(_pair(one, other))
        if between is None:
            between = self._anywhere.get(condition)
        if between is None:
            rows = max(self.statistics.sources[one].rows, self.statistics.sources[other].rows, 1.0)
            between = 1 / rows if condition.kind == "hash" else 1.0
        return between

    @cached_property
    def _known(self) -> dict[Sources, Bounded]:
        # A search looks up every set of sources many times.
        return {}

    @cached_property
    def _measured(self) -> list[tuple[Condition, Sources, Sources, float]]:
        # Each condition that an index used in the running plan, between which sides, and the share that it let through.
        found = []
        for join in self.statistics.joins:
            used = self._index(join.left, join.right)
            found += [(c, c.sources & join.left, c.sources & join.right, join.matched ** (1 / len(used))) for c in used]
        return found

    @cached_property
    def _anywhere(self) -> Mapping[Condition, float]:
        shares: dict[Condition, list[float]] = {}
        for condition, _, _, share in self._measured:
            shares.setdefault(condition, []).append(share)
        return {condition: geometric_mean(found) for condition, found in shares.items()}

    @cached_property
    def _between(self) -> Mapping[Condition, Mapping[Between, float]]:
        shares: dict[Condition, dict[Between, list[float]]] = {}
        for condition, left, right, share in self._measured:
            for pair in {_pair(one, other) for one in left for other in right}:
                shares.setdefault(condition, {}).setdefault(pair, []).append(share)
        return {c: {pair: geometric_mean(found) for pair, found in pairs.items()} for c, pairs in shares.items()}

    @cached_property
    def _passed(self) -> Mapping[frozenset[Sources], float]:
        return {frozenset({join.left, join.right}): join.passed for join in self.statistics.joins}


def _pair(one: str, other: str) -> Between:
    return (one, other) if one < other else (other, one)
