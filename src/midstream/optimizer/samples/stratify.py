"""The sample of a query's sources: end-biased, so that frequent keys are in it for certain.

Keys whose hash lies under a threshold are kept with all their rows, the same keys in every stream (universe sampling,
also called correlated sampling): joins of such samples over any number of streams are unbiased, with the skew and the
correlation between streams in them. Frequent keys would make them vary: they are found in a uniform sample of rows and
estimated from it, one by one, as an end-biased histogram does (OM §4.3 by way of Poosala). Rows that no equality ties
to others are sampled uniformly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.drawn import Drawn, Mask, Words, together
from midstream.optimizer.samples.hashing import below
from midstream.optimizer.samples.living import Living
from midstream.optimizer.samples.strata import Numbers, SampledKeys, SampledSource, Strata

FREQUENT = 4
"""How often a key is met in the first part of some stream's uniform sample to be estimated by itself."""

FIRST = 0.25
"""The part of a uniform sample that says which keys are frequent; the rest says how frequent, so that none is too often
because it was met by chance."""

ENOUGH = 8
"""Rows of a key, of those that are kept of it by chance."""

STEP = 1.05
"""By how much the shares of keys grow at once while there is room."""


def stratified(livings: Mapping[str, Living], budget: Mapping[str, int]) -> Strata:
    """Draw samples of about `budget` rows of each source, half of them by key where a source has one."""
    if all(living.listed <= budget[alias] for alias, living in livings.items()):
        return _all_of_them(livings)
    shares = {}
    for alias, living in livings.items():
        most = budget[alias] / 2 if living.keys else budget[alias]
        shares[alias] = min(most / max(living.listed, 1), 1.0)
    uniform = {alias: living.rows(shares[alias]) for alias, living in livings.items()}
    classes = sorted({name for living in livings.values() for name in living.keys})
    first = {a: below(rows.row_hashes, FIRST * shares[a]) for a, rows in uniform.items()}
    frequent = {name: _frequent(name, livings, uniform, first) for name in classes}
    rare = {alias: _rare(livings[alias], rows, frequent) for alias, rows in uniform.items()}
    left, room, per_key = {}, {}, {}
    for alias in livings:
        is_rare = _everywhere(rare[alias], len(uniform[alias]))
        left[alias] = float(is_rare.sum()) / shares[alias]
        room[alias] = budget[alias] - float((~is_rare).sum())
        per_key[alias] = max(_per_key(uniform[alias], is_rare, left[alias]), min(room[alias] / max(left[alias], 1), 1))
    expected = {alias: left[alias] * per_key[alias] for alias, living in livings.items() if living.keys}
    thresholds = _thresholds({alias: tuple(livings[alias].keys) for alias in expected}, expected, room)
    if all(share == 1.0 for share in (*thresholds.values(), *per_key.values())):
        frequent = {name: found[:0] for name, found in frequent.items()}
        rare = {alias: _rare(livings[alias], rows, frequent) for alias, rows in uniform.items()}
    drawn = {}
    for alias, living in livings.items():
        both = shares[alias], per_key[alias]
        drawn[alias] = _kept(living, uniform[alias], rare[alias], first[alias], both, frequent, thresholds)
    alive = {alias: _alive(len(rows), shares[alias]) for alias, rows in uniform.items()}
    return _coded(livings, drawn, frequent, thresholds, alive)


def _all_of_them(livings: Mapping[str, Living]) -> Strata:
    # Where there is room for all rows no key need be looked at by itself.
    rows = {alias: living.rows(1.0) for alias, living in livings.items()}
    classes = sorted({name for living in livings.values() for name in living.keys})
    drawn = {alias: (found, np.ones(len(found))) for alias, found in rows.items()}
    alive = {alias: _alive(len(found), 1.0) for alias, found in rows.items()}
    nothing = {name: np.zeros(0, np.int64) for name in classes}
    return _coded(livings, drawn, nothing, dict.fromkeys(classes, 1.0), alive)


def _thresholds(
    classes: Mapping[str, tuple[str, ...]], rows: Mapping[str, float], room: Mapping[str, float]
) -> dict[str, float]:
    # A source in several classes is left with the product of their shares: the others make room for it.
    found: dict[str, float] = {}
    for alias, names in classes.items():
        for name in names:
            own = min(room[alias] / max(rows[alias], 1.0), 1.0) ** (1 / len(names))
            found[name] = min(found.get(name, 1.0), own)
    while True:
        more = {name: min(share * STEP, 1.0) for name, share in found.items()}
        taken = sum(rows[alias] * prod(more[name] for name in names) for alias, names in classes.items())
        if more == found or taken > sum(room[alias] for alias in classes):
            return found
        found = more


def _alive(sampled: int, share: float) -> Bounded:
    return Bounded.sampled(sampled / share, sampled * (1 - share) / share**2)


def _per_key(uniform: Drawn, is_rare: Mask, rows: float) -> float:
    # Where keys have many rows each, more keys say more. The number of keys is estimated from those that a uniform
    # sample has once (the GEE estimator of Charikar et al.).
    most = 0.0
    for codes in uniform.codes:
        counts = np.unique(codes[is_rare], return_counts=True)[1]
        once = int((counts == 1).sum())
        most = max(most, len(counts) - once + once * (rows / max(int(is_rare.sum()), 1)) ** 0.5)
    return min(ENOUGH * most / rows, 1.0) if rows and most else 1.0


def _frequent(
    name: str, livings: Mapping[str, Living], uniform: Mapping[str, Drawn], first: Mapping[str, Mask]
) -> Words:
    # The first rows of each uniform sample decide which keys are frequent.
    found = [np.zeros(0, np.int64)]
    for alias, living in livings.items():
        if name in living.keys:
            at = list(living.keys).index(name)
            rows = uniform[alias]
            codes, counts = np.unique(rows.codes[at][first[alias] & rows.valid[at]], return_counts=True)
            found.append(codes[counts >= FREQUENT])
    return np.unique(np.concatenate(found))


def _rare(living: Living, rows: Drawn, frequent: Mapping[str, Words]) -> list[Mask]:
    return [
        ~_among(codes, frequent[name]) | ~valid
        for name, codes, valid in zip(living.keys, rows.codes, rows.valid, strict=True)
    ]


def _everywhere(masks: Sequence[Mask], rows: int) -> Mask:
    found = np.ones(rows, np.bool_)
    for mask in masks:
        found &= mask
    return found


def _among(codes: Words, ascending: Words) -> Mask:
    if not len(ascending):
        return np.zeros(len(codes), np.bool_)
    at = np.minimum(np.searchsorted(ascending, codes), len(ascending) - 1)
    return np.asarray(ascending[at] == codes)


def _kept(
    living: Living,
    uniform: Drawn,
    rare: Sequence[Mask],
    first: Mask,
    shares: tuple[float, float],
    frequent: Mapping[str, Words],
    thresholds: Mapping[str, float],
) -> tuple[Drawn, Numbers]:
    # Rows of rare keys are chosen by their keys, rows with a frequent key by chance. `rare` marks by class where the
    # keys of the uniform sample are rare, `first` the rows that have decided what is frequent; `shares` are those of
    # the uniform sample and of the rows of a rare key.
    share, per_key = shares
    if not living.keys:
        return uniform, np.full(len(uniform), 1 / share)
    by_key = living.keyed([thresholds[name] for name in living.keys], per_key)
    by_key = by_key.take(_everywhere(_rare(living, by_key, frequent), len(by_key)))
    mask = ~_everywhere(rare, len(uniform))
    for name, here, found in zip(living.keys, rare, uniform.key_hashes, strict=True):
        mask &= ~here | below(found, thresholds[name])
    by_row = uniform.take(mask)
    # What chose the keys is known for certain; the rest stands for the rows that were not looked at by then.
    by_chance = np.where(first[mask], 1.0, (1 - FIRST * share) / (share - FIRST * share))
    weights = np.concatenate([np.full(len(by_key), 1 / per_key), by_chance])
    return together([by_key, by_row]), weights


def _coded(
    livings: Mapping[str, Living],
    drawn: Mapping[str, tuple[Drawn, Numbers]],
    frequent: Mapping[str, Words],
    thresholds: Mapping[str, float],
    alive: Mapping[str, Bounded],
) -> Strata:
    # Keys become places in the class's list, because they are met with often.
    places: dict[str, dict[str, Words]] = {alias: {} for alias in livings}
    keys = {}
    for name, share in thresholds.items():
        members = [alias for alias, living in livings.items() if name in living.keys]
        at = {alias: list(livings[alias].keys).index(name) for alias in members}
        known, inverse = np.unique(
            np.concatenate([drawn[alias][0].codes[at[alias]] for alias in members]), return_inverse=True
        )
        begin = 0
        for alias in members:
            rows = drawn[alias][0]
            here = inverse[begin : begin + len(rows)]
            begin += len(rows)
            places[alias][name] = np.where(rows.valid[at[alias]], here, len(known))
        factors = np.append(np.where(_among(known, frequent[name]), 1.0, 1 / share), 1 / share)
        keys[name] = SampledKeys(name, frozenset(members), factors)
    sources = {
        alias: SampledSource(weights, places[alias], rows.valid_from, rows.valid_to, rows.payload, alive[alias])
        for alias, (rows, weights) in drawn.items()
    }
    return Strata(sources, keys)
