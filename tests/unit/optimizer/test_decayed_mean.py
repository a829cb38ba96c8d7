"""Decayed means of what rounds showed (OM §4.3)."""

from __future__ import annotations

from math import exp

import numpy as np
from pytest import approx

from midstream.optimizer.decayed_mean import DecayedMean, decayed_means


def test_the_estimate_is_the_papers_weighted_mean() -> None:
    """`sum F(R - r) G(r) / sum G(r)` with `G(r) = exp(-a r)`, r from 0 to d."""
    mean = DecayedMean(rounds=2, decay=0.5)
    for value in (100.0, 3.0, 5.0, 8.0):
        mean = mean.observed(value)
    weights = [1.0, exp(-0.5), exp(-1.0)]
    assert mean.observations == (8, 5, 3), "r = 0 .. d are d + 1 rounds"
    assert mean.value == approx((8 * weights[0] + 5 * weights[1] + 3 * weights[2]) / sum(weights))
    assert DecayedMean().value == 0


def test_many_rounds_at_once_are_the_means_one_after_the_other() -> None:
    observed = np.random.default_rng(1).uniform(1, 9, (12, 2))
    found = decayed_means(observed, rounds=3, decay=0.7)
    mean = DecayedMean((observed[0, 1],) * 4, rounds=3, decay=0.7)
    for before, estimate in zip(observed[:, 1], found[1:, 1], strict=False):
        mean = mean.observed(before)
        assert estimate == approx(mean.value)
    assert found[0].tolist() == approx(observed[0].tolist()), "the first round is known"
