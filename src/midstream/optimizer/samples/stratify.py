"""The sample of a query's sources: end-biased, so that frequent keys are in it for certain.

Keys whose hash lies under a threshold are kept with all their rows, the same keys in every stream (universe sampling,
also called correlated sampling): joins of such samples over any number of streams are unbiased, with the skew and the
correlation between streams in them. Frequent keys would make them vary, and a key of 1 % of the rows may be most of a
join: they are counted, one by one, as an end-biased histogram does (OM §4.3 by way of Poosala), and a uniform sample of
rows says what else their rows hold. Rows that no equality ties to others are sampled uniformly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.drawn import Drawn, together
from midstream.optimizer.samples.hashing import Mask, Words, below
from midstream.optimizer.samples.living import Living
from midstream.optimizer.samples.strata import Numbers, SampledKeys, SampledSource, Strata, sums

Often = Mapping[str, tuple[Words, Numbers]]
"""By class the codes of keys that a source has often, ascending, and how many of its rows alive have them."""

FREQUENT = 4  # a key is estimated by itself if some stream's uniform sample is expected to hold it so often
ENOUGH = 8  # rows of a key, of those that are kept of it by chance
STEP = 1.05  # by how much the shares of keys grow at once while there is room


class Kept(NamedTuple):
    """The sampled rows of a source, with what `SampledSource` has of them."""

    rows: Drawn
    weights: Numbers
    counted: Words
    by_row: dict[str, tuple[Numbers, Numbers]]


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
    often = {alias: living.often(shares[alias]) for alias, living in livings.items()}
    frequent = {name: _frequent(name, often, shares) for name in classes}
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
        weights = _weights(living, uniform[alias], shares[alias], frequent, often[alias])
        drawn[alias] = _kept(living, uniform[alias], rare[alias], weights, per_key[alias], frequent, thresholds)
    alive = {alias: _alive(len(rows), shares[alias]) for alias, rows in uniform.items()}
    return _coded(livings, drawn, frequent, thresholds, alive)


def _all_of_them(livings: Mapping[str, Living]) -> Strata:
    # Where there is room for all rows no key need be looked at by itself.
    rows = {alias: living.everything() for alias, living in livings.items()}
    classes = sorted({name for living in livings.values() for name in living.keys})
    drawn = {a: Kept(found, np.ones(len(found)), np.zeros(len(found), np.int64), {}) for a, found in rows.items()}
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


def _frequent(name: str, often: Mapping[str, Often], shares: Mapping[str, float]) -> Words:
    found = [np.zeros(0, np.int64)]
    for alias, keys in often.items():
        if name in keys:
            codes, counts = keys[name]
            found.append(codes[counts * shares[alias] >= FREQUENT])
    return np.unique(np.concatenate(found))


def _weights(
    living: Living, uniform: Drawn, share: float, frequent: Mapping[str, Words], often: Often
) -> tuple[Numbers, Words]:
    # The sampled rows of a frequent key stand for as many as were counted.
    weights, counted = np.full(len(uniform), 1 / share), np.zeros(len(uniform), np.int64)
    for name, codes, valid in zip(living.keys, uniform.codes, uniform.valid, strict=True):
        known, counts = often[name]
        some = np.flatnonzero(_among(codes, frequent[name]) & _among(codes, known) & valid)
        places = np.searchsorted(known, codes[some])
        weights[some] *= (counts / np.maximum(sums(places, weights[some], len(known)), 1e-9))[places]
        counted[some] = counted.max(initial=0) + 1 + places
    return weights, counted


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
    weighed: tuple[Numbers, Words],
    per_key: float,
    frequent: Mapping[str, Words],
    thresholds: Mapping[str, float],
) -> Kept:
    # Rows of rare keys are chosen by their keys, rows with a frequent key by chance. `rare` marks by class where the
    # keys of the uniform sample are rare; `per_key` is the share of the rows of a rare key.
    if not living.keys:
        return Kept(uniform, *weighed, {})
    by_key = living.keyed([thresholds[name] for name in living.keys], per_key)
    by_key = by_key.take(_everywhere(_rare(living, by_key, frequent), len(by_key)))
    mask, ones = ~_everywhere(rare, len(uniform)), np.ones(len(by_key))
    by_row = {
        name: (
            np.concatenate([ones, np.where(here[mask], thresholds[name], 1.0)]),
            np.concatenate([ones, (~here | below(found, thresholds[name]))[mask]]),
        )
        for name, here, found in zip(living.keys, rare, uniform.key_hashes, strict=True)
        if here[mask].any() and thresholds[name] < 1
    }
    weights, counted = (found[mask] for found in weighed)
    return Kept(
        together([by_key, uniform.take(mask)]),
        np.concatenate([ones / per_key, weights]),
        np.concatenate([np.zeros(len(by_key), np.int64), counted]),
        by_row,
    )


def _coded(
    livings: Mapping[str, Living],
    drawn: Mapping[str, Kept],
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
            np.concatenate([drawn[alias].rows.codes[at[alias]] for alias in members]), return_inverse=True
        )
        begin = 0
        for alias in members:
            rows = drawn[alias].rows
            here = inverse[begin : begin + len(rows)]
            begin += len(rows)
            places[alias][name] = np.where(rows.valid[at[alias]], here, len(known))
        factors = np.append(np.where(_among(known, frequent[name]), 1.0, 1 / share), 1 / share)
        keys[name] = SampledKeys(name, frozenset(members), factors)
    sources = {}
    for alias, (rows, weights, counted, by_row) in drawn.items():
        lives = rows.valid_from, rows.valid_to
        sources[alias] = SampledSource(weights, places[alias], *lives, rows.payload, alive[alias], counted, by_row)
    return Strata(sources, keys)
