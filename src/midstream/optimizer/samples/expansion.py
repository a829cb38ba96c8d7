"""Joins of samples made pair by pair, by the engine's own predicates: for conditions in a circle, or of three sources.

Combinations are kept up to a bound; of more a part is kept by chance, that stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from typing_extensions import override

from midstream.language.evaluate import evaluate, holds
from midstream.language.expression import Expression
from midstream.language.query import EquiPredicate, Query
from midstream.operators.candidates import all_pairs, band_pairs, equal_pairs
from midstream.operators.join_condition import join_condition
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.drawn import Mask, Words
from midstream.optimizer.samples.hashing import below, hashes, salt
from midstream.optimizer.samples.links import reader
from midstream.optimizer.samples.strata import Numbers, Strata, sum_of_squares, sums
from midstream.plan.key_classes import KeyClass
from midstream.state.keys import Codes, band_codes, stable_sort

MOST_PAIRS = 1 << 18
"""Pairs that are looked at in one join."""

MOST_ROWS = 1 << 13
"""Combinations that are kept of one subset."""

ENOUGH_PAIRS = 4 * MOST_ROWS
"""Pairs of equal keys that are looked at where no other condition is left: most of them are combinations."""


class Places(Mapping[str, Words]):
    """Places of several sources' rows, selected from those of two sides: those of a source when it is asked for."""

    def __init__(self, *sides: tuple[Mapping[str, Words], Words | Mask | slice]) -> None:
        self._sides = {alias: side for side in sides for alias in side[0]}
        self._found: dict[str, Words] = {}

    @override
    def __getitem__(self, alias: str) -> Words:
        if alias not in self._found:
            places, at = self._sides[alias]
            self._found[alias] = places[alias][at]
        return self._found[alias]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._sides)

    @override
    def __len__(self) -> int:
        return len(self._sides)

    @override
    def __contains__(self, alias: object) -> bool:
        return alias in self._sides


@dataclass(frozen=True)
class Combined:
    """Combinations of sampled rows: the place of each source's row, and for how many combinations each stands.

    `kept` is the share of all combinations of the samples that these are. On each clock that matters, `lives` says from
    when until when all rows of a combination are within their windows.
    """

    places: Mapping[str, Words]
    weights: Numbers
    kept: float = 1.0
    lives: tuple[tuple[Words, Words], ...] = ()

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, at: Words | Mask) -> Combined:
        """Select the combinations at these places."""
        lives = tuple([(begin[at], end[at]) for begin, end in self.lives])
        return Combined(Places((self.places, at)), self.weights[at], self.kept, lives)

    def thinned(self, most: float, seed: int) -> Combined:
        """Thin out the combinations to about `most` at most, each representing more."""
        if len(self) <= most:
            return self
        share = most / len(self)
        kept = self.take(below(hashes(np.arange(len(self)), salt(seed, "combination", *self.places)), share))
        return replace(kept, weights=kept.weights / share, kept=kept.kept * share)


@dataclass(frozen=True)
class Expansion:
    """The joins of a query's samples; `query` has the conditions that count, `classes` its key classes."""

    query: Query
    classes: Sequence[KeyClass]
    strata: Strata
    windows: bool
    seed: int
    _rows: dict[str, Combined] = field(default_factory=dict)

    def of(self, alias: str) -> Combined:
        """Return the rows of one source."""
        if alias not in self._rows:
            self._rows[alias] = self._rows_of(alias)
        return self._rows[alias]

    def _rows_of(self, alias: str) -> Combined:
        source = self.strata.sources[alias]
        lives = [(begin, source.valid_to[clock]) for clock, begin in source.valid_from.items() if self.windows]
        weights = source.weighed(self.strata.keys)
        found = Combined({alias: np.arange(len(weights))}, weights, lives=tuple(lives))
        return found.take(weights > 0) if source.by_row else found

    def joined(self, left: Combined, alias: str) -> Combined:
        """Join combinations with one more source."""
        right = self.of(alias)
        if self._have_keys_alone and any(alias in c and not c.isdisjoint(left.places) for c in self._tied):
            return self._joined_by_keys(left, right, ())
        on = join_condition(self.query, frozenset(left.places), frozenset({alias}), self.classes)
        if on.index == "scan":
            most = int(MOST_PAIRS**0.5)
            left = left.thinned(max(most, MOST_PAIRS / max(len(right), 1)), self.seed)
            right = right.thinned(max(most, MOST_PAIRS / max(len(left), 1)), self.seed)
            return self._kept(left, right, all_pairs(len(left), len(right)), on.residual)
        if on.index == "band":
            left, left_codes = _ascending(left, *self._band(left, on.left_key[0]))
            right, right_codes = _ascending(right, *self._band(right, on.right_key[0]))
            if len(left) * len(right) > MOST_PAIRS:
                left, left_codes = _thinned(left, left_codes, max(MOST_PAIRS / len(right), MOST_PAIRS**0.5), self.seed)
                right, right_codes = _thinned(right, right_codes, max(MOST_PAIRS / len(left), 1), self.seed)
            return self._kept(left, right, band_pairs(left_codes, right_codes, on.low, on.high), on.residual)
        return self._joined_by_keys(left, right, on.residual)

    @cached_property
    def _tied(self) -> list[frozenset[str]]:
        return [frozenset([alias for member in one.members for alias in member.aliases()]) for one in self.classes]

    @cached_property
    def _have_keys_alone(self) -> bool:
        # No other condition is left over where two sides are joined by a key.
        keys = all(isinstance(one, EquiPredicate) for one in self.query.predicates)
        return keys and not any(one.doubles(self.query.aliases) for one in self.classes)

    def _joined_by_keys(self, left: Combined, right: Combined, residual: Sequence[Expression]) -> Combined:
        left, keys = _ascending(left, *self._keys(left, *right.places))
        right, others = _ascending(right, *self._keys(right, *left.places))
        expected = int((np.searchsorted(others, keys, "right") - np.searchsorted(others, keys, "left")).sum())
        most = MOST_PAIRS if residual else ENOUGH_PAIRS
        if expected > most:
            left, keys = _thinned(left, keys, len(left) * most / expected, self.seed)
        return self._kept(left, right, equal_pairs(keys, others), residual)

    def size(self, found: Combined) -> Bounded:
        """Estimate how many combinations these represent, with the variance of what was kept by chance."""
        total = found.weights
        by_key = []
        for keys in self.strata.keys.values():
            alias = min([alias for alias in found.places if alias in keys.sources], default="")
            if not alias:
                continue
            places = self.strata.sources[alias].places[keys.name][found.places[alias]]
            by_key.append((keys, places))
            total = total * keys.factors[places]
        variance = (1 - found.kept) * sum_of_squares(total)
        for keys, places in by_key:
            per_key = sums(places, total, len(keys.factors))
            variance += sum_of_squares(per_key, keys.uncertain)
        for alias in found.places:
            source = self.strata.sources[alias]
            if source.varies:
                variance += source.variance(sums(found.places[alias], total, len(source.weights)))
        return Bounded.sampled(float(total.sum()), variance)

    def _kept(
        self, left: Combined, right: Combined, blocks: Iterable[tuple[Words, Words]], residual: Sequence[Expression]
    ) -> Combined:
        pairs = list(blocks)
        one, other = (np.concatenate([p[side] for p in pairs]) if pairs else np.zeros(0, np.int64) for side in (0, 1))
        lives = [
            (np.maximum(mine[0][one], theirs[0][other]), np.minimum(mine[1][one], theirs[1][other]))
            for mine, theirs in zip(left.lives, right.lives, strict=True)
        ]
        for at in range(len(lives)):
            within = np.flatnonzero(lives[at][0] <= lives[at][1])
            one, other, lives = one[within], other[within], [(begin[within], end[within]) for begin, end in lives]
        places = Places((left.places, one), (right.places, other))
        found = Combined(places, left.weights[one] * right.weights[other], left.kept * right.kept, tuple(lives))
        for condition in residual:
            if len(found):
                found = found.take(holds(condition, reader(self.strata.sources, found.places), len(found)))
        return found.thinned(MOST_ROWS, self.seed)

    def _keys(self, side: Combined, *others: str) -> tuple[Words, Mask]:
        # The class's places stand for the keys; they are those of the first source of the side.
        codes, valid = np.zeros(len(side), np.int64), np.ones(len(side), np.bool_)
        for name, keys in sorted(self.strata.keys.items()):
            inside = [] if keys.sources.isdisjoint(others) else [one for one in side.places if one in keys.sources]
            if inside:
                places = self.strata.sources[min(inside)].places[name][side.places[min(inside)]]
                codes = codes * len(keys.factors) + places
                valid &= places < len(keys.factors) - 1
        return codes, valid

    def _band(self, side: Combined, key: Expression) -> tuple[Codes, Mask]:
        codes, valid = band_codes(evaluate(key, reader(self.strata.sources, side.places), len(side)))
        return codes, np.ones(len(side), np.bool_) if valid is None else valid


def _ascending(side: Combined, codes: Codes, valid: Mask) -> tuple[Combined, Codes]:
    # Rows without a code are left out.
    if not valid.all():
        side, codes = side.take(valid), codes[valid]
    order, ascending = stable_sort(codes)
    return side.take(order), ascending


def _thinned(side: Combined, codes: Codes, most: float, seed: int) -> tuple[Combined, Codes]:
    # The rows stay in order.
    marked = Places((side.places, slice(None)), ({_CODE: np.arange(len(side))}, slice(None)))
    few = replace(side, places=marked).thinned(most, seed)
    at = few.places[_CODE]
    return replace(few, places=Places((side.places, at))), codes[at]


_CODE = ""
"""No alias: where a row stood."""
