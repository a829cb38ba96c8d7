"""Joins of samples made pair by pair, by the engine's own predicates: for conditions in a circle, or of three sources.

Combinations are kept up to a bound; of more a part is kept by chance, that stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.operators.candidates import all_pairs, band_pairs, count_equal_pairs, equal_pairs
from midstream.operators.join_condition import join_condition
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.hashing import Mask, Words, below, hashes, salt
from midstream.optimizer.samples.links import reader
from midstream.optimizer.samples.strata import Numbers, Strata, sum_of_squares, sums
from midstream.plan.key_classes import KeyClass
from midstream.state.keys import Codes, band_codes, stable_sort

MOST_PAIRS = 1 << 18  # pairs that are looked at in one join
MOST_ROWS = 1 << 13  # combinations that are kept of one subset

ENOUGH_PAIRS = 4 * MOST_ROWS  # of equal keys, where no other condition is left: most of them are combinations


@dataclass(frozen=True)
class Combined:
    """Combinations of sampled rows: by source the place of each one's row, and for how many combinations each stands.

    `kept` is the share of all combinations of the samples that these are. On each clock that matters, `lives` says from
    when until when all rows of a combination are within their windows.
    """

    aliases: tuple[str, ...]
    rows: Words
    weights: Numbers
    kept: float = 1.0
    lives: tuple[tuple[Words, Words], ...] = ()

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def places(self) -> Mapping[str, Words]:
        """The places of each source's rows."""
        return dict(zip(self.aliases, self.rows, strict=True))

    def take(self, at: Words | Mask) -> Combined:
        """Select the combinations at these places."""
        lives = tuple([(begin[at], end[at]) for begin, end in self.lives])
        return Combined(self.aliases, self.rows[:, at], self.weights[at], self.kept, lives)

    def thinned(self, most: float, seed: int) -> Combined:
        """Thin out the combinations to about `most` at most, each representing more."""
        if len(self) <= most:
            return self
        share = most / len(self)
        kept = self.take(below(hashes(np.arange(len(self)), salt(seed, "combination", *self.aliases)), share))
        return replace(kept, weights=kept.weights / share, kept=kept.kept * share)


@dataclass(frozen=True)
class Expansion:
    """The joins of a query's samples; `query` has the conditions that count, `classes` its key classes."""

    query: Query
    classes: Sequence[KeyClass]
    strata: Strata
    windows: bool
    seed: int
    _ordered: dict[tuple[str, tuple[str, ...]], tuple[Combined, Codes]] = field(default_factory=dict, repr=False)

    def of(self, alias: str) -> Combined:
        """Return the rows of one source."""
        source = self.strata.sources[alias]
        lives = [(begin, source.valid_to[clock]) for clock, begin in source.valid_from.items() if self.windows]
        weights = source.weighed(self.strata.keys)
        found = Combined((alias,), np.arange(len(weights))[None], weights, lives=tuple(lives))
        return found.take(weights > 0) if source.by_row else found

    def joined(self, left: Combined, alias: str) -> Combined:
        """Join combinations with one more source."""
        on = join_condition(self.query, frozenset(left.aliases), frozenset({alias}), self.classes)
        right = self.of(alias)
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
        tying = self._tying(left, alias)
        left, keys = _ascending(left, *self._keys(left, tying))
        if (alias, tying) not in self._ordered:
            self._ordered[alias, tying] = _ascending(right, *self._keys(right, tying))
        right, others = self._ordered[alias, tying]
        expected, most = count_equal_pairs(keys, others), MOST_PAIRS if on.residual else ENOUGH_PAIRS
        if expected > most:
            left, keys = _thinned(left, keys, len(left) * most / expected, self.seed)
        return self._kept(left, right, equal_pairs(keys, others), on.residual)

    def size(self, found: Combined) -> Bounded:
        """Estimate how many combinations these represent, with the variance of what was kept by chance."""
        total = found.weights
        by_key, rows = [], found.places
        for keys in [one for one in self.strata.keys.values() if not one.sources.isdisjoint(rows)]:
            alias = min(keys.sources & rows.keys())
            places = self.strata.sources[alias].places[keys.name][rows[alias]]
            by_key.append((keys, places))
            total = total * keys.factors[places]
        variance = (1 - found.kept) * sum_of_squares(total)
        for keys, places in by_key:
            per_key = sums(places, total, len(keys.factors))
            variance += sum_of_squares(per_key, keys.uncertain)
        for alias, places in rows.items():
            source = self.strata.sources[alias]
            if source.varies:
                variance += source.variance(sums(places, total, len(source.weights)))
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
        aliases, rows = (*left.aliases, *right.aliases), np.concatenate([left.rows[:, one], right.rows[:, other]])
        weights = left.weights[one] * right.weights[other]
        found = Combined(aliases, rows, weights, left.kept * right.kept, tuple(lives))
        for condition in residual:
            if len(found):
                found = found.take(holds(condition, reader(self.strata.sources, found.places), len(found)))
        return found.thinned(MOST_ROWS, self.seed)

    def _tying(self, left: Combined, alias: str) -> tuple[str, ...]:
        found = sorted(self.strata.keys.items())
        return tuple([k for k, one in found if alias in one.sources and not one.sources.isdisjoint(left.aliases)])

    def _keys(self, side: Combined, tying: Sequence[str]) -> tuple[Words, Mask]:
        # The class's places stand for the keys; they are those of the first source of the side.
        codes, valid = np.zeros(len(side), np.int64), np.ones(len(side), np.bool_)
        for name in tying:
            keys = self.strata.keys[name]
            first = min([one for one in side.aliases if one in keys.sources])
            places = self.strata.sources[first].places[name][side.rows[side.aliases.index(first)]]
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
    aliases, rows = (*side.aliases, _CODE), np.concatenate([side.rows, np.arange(len(side))[None]])
    few = replace(side, aliases=aliases, rows=rows).thinned(most, seed)
    return replace(few, aliases=side.aliases, rows=few.rows[:-1]), codes[few.rows[-1]]


_CODE = ""  # no alias: where a row stood
