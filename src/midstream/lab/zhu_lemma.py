"""Lemma 2.2 tuple by tuple: when the last old tuple leaves the old box (Zhu §2.4 and §5.2, Fig. 8).

The engine applies the lemma to the states of the old plan, a step at a time (`purge="zhu"`). Here the rule is applied
to the arrivals without an engine, so that the engine's stage and the 2W can be compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from midstream.lab.generator import Arrivals
from midstream.lab.trace import Numbers
from midstream.lab.zhu import ZhuSetting
from midstream.model.window import SECOND


@dataclass(frozen=True)
class Tuples:
    """Tuples, singletons or combined: their least and greatest timestamps, and the column the next join reads."""

    least: Numbers
    greatest: Numbers
    key: Numbers

    def join(self, other: Tuples, own_key: Numbers, window: float) -> Tuples:
        """Join pairs of equal key whose timestamps lie within a window, with the other's `own_key` to go on with."""
        least = np.minimum.outer(self.least, other.least)
        greatest = np.maximum.outer(self.greatest, other.greatest)
        at = (self.key[:, None] == other.key[None, :]) & (greatest - least <= window)
        return Tuples(least[at], greatest[at], np.broadcast_to(own_key, at.shape)[at])


def t_pt_by_lemma(setting: ZhuSetting, seed: int, start: float) -> float:
    """Compute the seconds from `start` until every state of (((A B) C) D) holds only new tuples."""
    window = setting.seconds
    rows = setting.workload(seed).arrivals(start + 5 * window)
    a, b, c, d = (_singletons(rows[name], start - window) for name in "ABCD")
    ab = _keyed(a, rows["A"], "ab").join(_keyed(b, rows["B"], "ab"), _column(b, rows["B"], "bc"), window)
    abc = ab.join(_keyed(c, rows["C"], "bc"), _column(c, rows["C"], "cd"), window)
    opposite = ((a, b), (b, a), (ab, c), (c, ab), (abc, d), (d, abc))
    return max(_empty(state, purging, start, window) for state, purging in opposite) - start


def _empty(state: Tuples, purging: Tuples, start: float, window: float) -> float:
    # A tuple t_L purges t_R if min(t_L) - max(t_R) > W (Lemma 2.2).
    old = state.greatest[state.least < start]
    if not len(old):
        return start
    # A combined tuple comes as late as its youngest component.
    return float(purging.greatest[purging.least > old.max() + window].min(initial=np.inf))


def _singletons(rows: Arrivals, since: float) -> Tuples:
    times = rows.times[rows.before(since) :] / SECOND
    return Tuples(times, times, np.zeros(len(times)))


def _column(tuples: Tuples, rows: Arrivals, name: str) -> Numbers:
    values: Numbers = rows.rows.column(name).to_numpy()[-len(tuples.least) :]
    return values


def _keyed(tuples: Tuples, rows: Arrivals, name: str) -> Tuples:
    return Tuples(tuples.least, tuples.greatest, _column(tuples, rows, name))
