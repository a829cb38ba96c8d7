"""Zhu's experiments (§6): the query of Fig. 4, the two plans, Table 2.

`t_pt_by_lemma` follows Lemma 2.2 tuple by tuple: when the last old tuple leaves the old box (Zhu §2.4, §5.2, Fig. 8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from midstream.embedded.stream_generator import GeneratedStream, Schedule
from midstream.lab.generator import Arrivals, Workload, equal, query
from midstream.lab.trace import Numbers, Trace, TraceStage
from midstream.lab.virtual_processor import PlanSwitch, Processor
from midstream.model.window import SECOND

OLD = "(((A B) C) D)"
NEW = "(A ((B C) D))"
"""The boxes of Figs. 4 and 5, left and right."""

MILLI = 0.001


@dataclass(frozen=True)
class ZhuSetting:
    """A column of Table 2: window and mean inter-arrival times in ms, reduction factors of the three joins."""

    window: float
    inter_arrival: Mapping[str, float]
    sigma: Mapping[str, float]

    def __hash__(self) -> int:
        return hash((self.window, *self.inter_arrival.items(), *self.sigma.items()))

    @property
    def seconds(self) -> float:
        """The window W in seconds."""
        return self.window * MILLI

    def rate(self, stream: str) -> float:
        """Compute lambda of a stream, in rows a second."""
        return 1 / (self.inter_arrival[stream] * MILLI)

    def workload(self, seed: int = 4) -> Workload:
        """Build Poisson streams, a column per predicate, joined by nested loops as in the paper's cost model (§5.1)."""
        size = {pair: 1 / factor for pair, factor in self.sigma.items()}
        sources = tuple(
            GeneratedStream(name, self.rate(name), {pair.lower(): round(n) for pair, n in size.items() if name in pair})
            for name in self.inter_arrival
        )
        predicates = [
            equal(f"{pair[0]}.{pair.lower()}", f"{pair[1]}.{pair.lower()}", nested=True) for pair in self.sigma
        ]
        window = f"RANGE {round(self.window)} MILLISECONDS"
        return Workload(sources, query(list(self.inter_arrival), predicates, window), seed)


SPEED = 200_000
"""Comparisons a second that suffice for sets 1 and 2 of §6.2, old and new plan at once."""


def set_1(window: float) -> ZhuSetting:
    """Build set 1 of Table 2, §6.2: W varies."""
    return ZhuSetting(window, dict.fromkeys("ABCD", 100.0), {"AB": 0.1, "BC": 0.05, "CD": 0.02})


def set_2(inter_arrival_b: float) -> ZhuSetting:
    """Build set 2 of Table 2, §6.2: I_B varies."""
    return ZhuSetting(1000, {"A": 50, "B": inter_arrival_b, "C": 50, "D": 50}, {"AB": 0.1, "BC": 0.05, "CD": 0.02})


def set_3(window: float) -> ZhuSetting:
    """Build set 3 of Table 2, §6.2: W varies, rates and reduction factors are high."""
    return ZhuSetting(window, {"A": 100, "B": 12, "C": 12, "D": 12}, dict.fromkeys(("AB", "BC", "CD"), 0.1))


LOW = ZhuSetting(1000, dict.fromkeys("ABCD", 100.0), {"AB": 0.1, "BC": 0.02, "CD": 0.02})
"""Table 2, §6.3 set 1: the system has power to spare."""

HIGH = ZhuSetting(2000, dict.fromkeys("ABCD", 50.0), {"AB": 0.2, "BC": 0.05, "CD": 0.05})
"""Table 2, §6.3 set 2: the system cannot keep up with the old plan."""

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "moving_state": {},
    "parallel_track": {"hold_new": True, "purge": "zhu"},
}
"""The strategies as the paper has them: results held for the order of Lemma 2.1, the 2W of Lemma 2.2 waited for."""


def stage(setting: ZhuSetting, strategy: str, speed: float, seed: int, steps: int = 20, **options: Any) -> TraceStage:
    """Run a migration at 2W, states full and queues empty, with `steps` steps a window; returns its stage.

    Until then the processor is as fast as need be, so that what it lacks shows in the stage alone.
    """
    start, at_once = 2 * setting.seconds, strategy == "moving_state"
    processor = Processor(Schedule(((0, 1e12), (start, speed))), tick=setting.seconds / (2 if at_once else steps))
    switch = PlanSwitch(start, NEW, strategy, {**OPTIONS[strategy], **options})
    # The end waits for the slowest stream's watermark.
    until = start + 3 * setting.seconds + 30 * MILLI * max(setting.inter_arrival.values())
    return processor.play(setting.workload(seed), OLD, until, [switch], settle=True).stage


DRAINED = "moving_state, drained"
"""Moving state as in Algorithm 2: the old plan processes the accumulated tuples first."""


@lru_cache(maxsize=4)
def all_cases(setting: ZhuSetting, speed: float, tick: float, until: float) -> Mapping[str, Trace]:
    """Run the cases of §6.3: new plan only, old plan only, and both strategies, begun at `MIGRATED`; and `DRAINED`."""
    processor, workload = Processor(speed, tick), setting.workload()
    never = {"new": processor.play(workload, NEW, until), "old": processor.play(workload, OLD, until)}
    switches = {strategy: PlanSwitch(MIGRATED, NEW, strategy, options) for strategy, options in OPTIONS.items()}
    switches[DRAINED] = PlanSwitch(MIGRATED, NEW, "moving_state", drained=True)
    return never | {case: processor.play(workload, OLD, until, [switch]) for case, switch in switches.items()}


MIGRATED = 10.0
"""When the old plan has been executed for 10,000 ms (§6.3)."""


def predicted(model: Callable[..., float], setting: ZhuSetting, speed: float) -> float:
    """Evaluate a model of T_MS for the migration from `OLD` to `NEW`, with the processor's T_j and T_s = 0."""
    return model(
        lambda_b=setting.rate("B"),
        lambda_c=setting.rate("C"),
        lambda_d=setting.rate("D"),
        w=setting.seconds,
        t_j=1 / speed,
        t_s=0,
        sigma_bc=setting.sigma["BC"],
        sigma_bcd=setting.sigma["CD"],
    )


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
