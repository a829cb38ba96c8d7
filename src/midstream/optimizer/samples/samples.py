"""What the samples of a query's sources say: the size of the join of any subset of them, with bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import exp, log

from midstream.logical.query import BandPredicate, EquiPredicate, Query
from midstream.operators.join_condition import join_condition
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.expansion import Combined, Expansion
from midstream.optimizer.samples.links import Link, link
from midstream.optimizer.samples.strata import Strata
from midstream.optimizer.samples.sum_product import Meetings, Network
from midstream.plan.key_classes import KeyClass, key_classes

Sources = frozenset[str]
Places = frozenset[int]
"""Predicates of a query, by where they stand in it."""

MANY = 8  # of more sources than these one alone is taken away to estimate what the others let expect
MOST_ROWS = 1 << 15  # so many rows at most are ordered by the times of their windows
VAGUE = 0.25  # a variance of so many times the square of the estimate says nothing


@dataclass(frozen=True)
class Samples:
    """Answers from samples of the rows that are alive; `query` speaks of sources by the user's aliases.

    `windows`: rows are alive that are no longer in one window with others, because a stream is behind. Universe samples
    stand for equalities, uniform ones for the rest (see `strata`). Beyond OM §4.3, where histograms of single columns
    stand for joins: the same keys are looked at in every stream, so skew and correlation are in the answer.
    """

    query: Query
    strata: Strata
    windows: bool = False
    seed: int = 0
    _sizes: dict[tuple[Sources, Places], Bounded] = field(default_factory=dict, compare=False, repr=False)
    _links: dict[int, Link] = field(default_factory=dict, compare=False, repr=False)
    _combined: dict[tuple[Sources, Places], Combined] = field(default_factory=dict, compare=False, repr=False)
    _expansions: dict[Places, Expansion] = field(default_factory=dict, compare=False, repr=False)

    def rows(self, sources: Sources) -> Bounded:
        """Estimate the living combinations of any sources."""
        return self._size(sources, self._within(sources))

    def compared(self, left: Sources, right: Sources) -> float:
        """Estimate the pairs of living combinations of two sides that the index of their join lets through."""
        crossing = self._within(left | right) - self._within(left) - self._within(right)
        searched: Places = frozenset()
        if crossing and (on := join_condition(self.query, left, right, self._classes)).index == "band":
            sides = {on.left_key[0].text(), on.right_key[0].text()}
            searched = frozenset(at for at in crossing if self._sides(at) == sides)
        return self._size(left | right, self._within(left) | self._within(right) | searched).value

    def _size(self, sources: Sources, conditions: Places) -> Bounded:
        at = (sources, conditions)
        if at not in self._sizes:
            pieces = self._pieces(sources, conditions)
            if len(pieces) > 1:
                parts = (self._size(piece, self._only(conditions, piece)) for piece in pieces)
                self._sizes[at] = Bounded.product(parts)
            else:
                self._sizes[at] = self._tied(sources, conditions)
        return self._sizes[at]

    def _tied(self, sources: Sources, conditions: Places) -> Bounded:
        if len(sources) == 1:
            return self.strata.sources[next(iter(sources))].alive
        found = self._counted(sources, conditions)
        deviation = (found.high - found.value) / 2
        if found.value and deviation**2 < VAGUE * found.value**2:
            return found
        likely = self._by_parts(sources, conditions)
        if likely is None:
            return found
        return replace(found, value=likely, low=min(found.low, likely), high=max(found.high, likely))

    def _counted(self, sources: Sources, conditions: Places) -> Bounded:
        if self._meetings is not None and not conditions and sources.issubset(self._meetings.members):
            return self._meetings.size(sources)
        simple = not self.windows and all(len(self.query.predicates[at].aliases()) == 2 for at in conditions)
        if simple and not any(one.doubles(sources) for one in self._classes):
            network = Network(self.strata, sources, [self._link(at) for at in sorted(conditions)])
            if network.is_tree:
                return network.size()
        return self._expansion(conditions).size(self._expanded(sources, conditions))

    def _expansion(self, conditions: Places) -> Expansion:
        if conditions not in self._expansions:
            query = self._query_of(conditions)
            self._expansions[conditions] = Expansion(query, self._classes, self.strata, self.windows, self.seed)
        return self._expansions[conditions]

    def _expanded(self, sources: Sources, conditions: Places) -> Combined:
        at, expansion = (sources, conditions), self._expansion(conditions)
        if at not in self._combined:
            if len(sources) == 1:
                self._combined[at] = expansion.of(next(iter(sources)))
            else:
                # A predicate of three ties no two of them.
                last = next(self._leaves(sources, conditions), max(sources))
                left = sources - {last}
                before = self._expanded(left, self._only(conditions, left))
                self._combined[at] = expansion.joined(before, last)
        return self._combined[at]

    def _by_parts(self, sources: Sources, conditions: Places) -> float | None:
        # Given the sources that it is tied to, the last one is taken to be independent of the others.
        if any(sources <= keys.sources for keys in self.strata.keys.values()):
            return None  # Each is tied to all others.
        found = []
        # Of many sources one leaf is taken: all of them, and again all of what is left, would be all subsets.
        for last in islice(self._leaves(sources, conditions), 1 if len(sources) > MANY else None):
            left = sources - {last}
            near = self._tied_to(last, conditions) & left
            if near and near != left:
                before = self._size(left, self._only(conditions, left)).value
                both, alone = near | {last}, self._size(near, self._only(conditions, near)).value
                step = self._size(both, self._only(conditions, both)).value / alone if alone else 0.0
                found.append(log(max(before * step, 1e-9)))
        return exp(sum(found) / len(found)) if found else None

    def _leaves(self, sources: Sources, conditions: Places) -> Iterator[str]:
        # Without a leaf the other sources are still tied together.
        for alias in sorted(sources, reverse=True):
            left = sources - {alias}
            if len(self._pieces(left, self._only(conditions, left))) == 1:
                yield alias

    def _tied_to(self, source: str, conditions: Places) -> Sources:
        tied = [keys.sources for keys in self.strata.keys.values() if source in keys.sources]
        tied += [both for at in conditions if len(both := self.query.predicates[at].aliases()) == 2 and source in both]
        return frozenset[str]().union(*tied) - {source}

    def _pieces(self, sources: Sources, conditions: Places) -> list[Sources]:
        if any(sources <= keys.sources for keys in self.strata.keys.values()):
            return [sources]
        ties = [keys.sources & sources for keys in self.strata.keys.values()]
        ties += [self.query.predicates[at].aliases() for at in sorted(conditions)]
        pieces = [frozenset({alias}) for alias in sorted(sources)]
        for tie in ties:
            touched = [piece for piece in pieces if piece & tie]
            if len(touched) > 1:
                pieces = [frozenset[str]().union(*touched), *(piece for piece in pieces if not piece & tie)]
        return sorted(pieces, key=sorted)

    def _within(self, sources: Sources) -> Places:
        return self._only(self._others, sources)

    @cached_property
    def _others(self) -> Places:
        return frozenset(at for at, one in enumerate(self.query.predicates) if not isinstance(one, EquiPredicate))

    def _only(self, conditions: Places, sources: Sources) -> Places:
        return frozenset([at for at in conditions if self.query.predicates[at].aliases() <= sources])

    def _sides(self, at: int) -> set[str]:
        predicate = self.query.predicates[at]
        return {predicate.left.text(), predicate.right.text()} if isinstance(predicate, BandPredicate) else set()

    def _query_of(self, conditions: Places) -> Query:
        kept = (p for at, p in enumerate(self.query.predicates) if at in conditions or isinstance(p, EquiPredicate))
        return replace(self.query, predicates=tuple(kept))

    @cached_property
    def _classes(self) -> tuple[KeyClass, ...]:
        return key_classes(self.query)

    @cached_property
    def _meetings(self) -> Meetings | None:
        # None where several classes tie sources, or rows are missing, or more of them live on clocks than are sorted.
        clocks = sorted({clock for one in self.strata.sources.values() for clock in one.valid_from if self.windows})
        rows = sum([len(one.weights) for one in self.strata.sources.values()])
        if len(self._classes) != 1 or len(clocks) > 1 or (clocks and rows > MOST_ROWS) or not self.strata.is_whole:
            return None
        (keys,) = self.strata.keys.values()
        return None if self._classes[0].doubles(keys.sources) else Meetings.of(self.strata, keys, *clocks)

    def _link(self, at: int) -> Link:
        if at not in self._links:
            self._links[at] = link(self.query.predicates[at], self.strata.sources)
        return self._links[at]
