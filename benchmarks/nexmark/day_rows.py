"""The rows of an auction day: NEXMark's, but how many there are of each kind, and how hot its keys are, drifts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.optimizer.load import Load
from benchmarks.plan_change.rows import Rows
from benchmarks.plan_change.scenario import Profile
from midstream.demo.nexmark import START, EventMoments, Heat, Integers, drawn

GRID = 10_000
"""Pieces that a day is cut into to place events by a rate that changes."""


@dataclass(frozen=True)
class Day:
    """How the day goes, in windows: shares of the load's rate by stream, and of how many draws one is not hot."""

    rates: Mapping[str, Profile]
    hot_auctions: Profile
    hot_sellers: Profile
    hot_bidders: Profile
    length: float
    seed: int = 0

    def rows(self, load: Load) -> Rows:
        """All rows at a load, the same on every call; times count from the beginning of the day."""
        people, auctions, bids = (self._times(stream, load) for stream in ("person", "auction", "bid"))
        seen = [
            EventMoments(_newest(people, times), _newest(auctions, times), START + times)
            for times in (people, auctions, bids)
        ]
        heat = Heat(
            self._one_of(self.hot_auctions, bids, load),
            self._one_of(self.hot_sellers, auctions, load),
            self._one_of(self.hot_bidders, bids, load),
        )
        tables = vars(drawn(*seen, self.seed, round(load.window * 1e6), heat))
        return Rows(tables, {"person": people, "auction": auctions, "bid": bids})

    def _times(self, stream: str, load: Load) -> Integers:
        """When the events of a stream come, in microseconds: as dense as its rate says."""
        grid = np.linspace(0, self.length, GRID + 1)
        rates = self.rates[stream].at((grid[1:] + grid[:-1]) / 2)
        expected = np.concatenate([[0.0], np.cumsum(rates)]) * (self.length / GRID) * load.window * load.rate
        moments = np.interp(np.arange(0.5, int(expected[-1])), expected, grid)
        return np.round(moments * load.window * 1e6).astype(np.int64)

    def _one_of(self, profile: Profile, times: Integers, load: Load) -> Integers:
        return np.rint(profile.at(times / (load.window * 1e6))).astype(np.int64)


def _newest(whose: Integers, times: Integers) -> Integers:
    """The last one, counted from 0, that has come by these times; -1 for none."""
    return np.searchsorted(whose, times, side="right") - 1
