"""The engine under Wang's workload (§8.1, Tables 8.1 and 8.2): two streams, queries over them, and what it counted."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded import Engine
from midstream.embedded.stream_generator import GeneratedStream
from midstream.lab.costs.cost_terms import Cost
from midstream.lab.drawing import PANEL, RATE, draw_panels
from midstream.lab.figure import Canvas, Figure, Scale
from midstream.lab.generator import Workload
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateKind
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.sharing.recut import MEASURED

RATES = (20.0, 40.0, 60.0, 80.0)
"""Input rates of each stream, rows a second."""

RUN = 90.0
"""How long the stream generator runs, in seconds."""

THREE: Mapping[str, tuple[float, ...]] = {
    "Mostly-Small": (5, 10, 30),
    "Uniform": (10, 20, 30),
    "Mostly-Large": (20, 25, 30),
}
"""The windows of Table 8.1, in seconds."""

S_SIGMA = (0.2, 0.5, 0.8)
"""The selectivities of the filter of Table 8.1."""

PARTS = 1_000
"""Values are whole numbers below it: selectivities are thousandths."""


TICK, FINE = 1.0, 0.5
"""Seconds of the paper in a step: they decide how many slices mode cpu_opt makes, and which chunks filters spare."""


@dataclass(frozen=True)
class WangSetting:
    """Q_1 without a filter, the others with the same one on A; the windows ascend.

    `pace` is how long a second of the paper takes here: windows, the run and steps of `tick` are so many times as long.

    >>> WangSetting((5, 30), rate=20, s_sigma=0.5, s_join=0.1).queries(500)["q2"].partition(" WHERE ")[2]
    '(A.u + B.u) % 1000 < 100 AND A.v < 500'
    """

    windows: tuple[float, ...]
    rate: float
    s_sigma: float
    s_join: float
    pace: float = 1.0
    run: float = RUN
    tick: float = TICK

    @property
    def sources(self) -> tuple[GeneratedStream, ...]:
        """The streams; both columns are uniform."""
        return tuple(GeneratedStream(name, self.rate, {"u": PARTS, "v": PARTS}) for name in "AB")

    @property
    def until(self) -> float:
        """The end of the run in seconds."""
        return self.run * self.pace

    @property
    def filtered(self) -> int:
        """The number of queries that have the filter."""
        return len(self.windows) - 1 if self.s_sigma < 1 else 0

    def queries(self, bound: int) -> dict[str, str]:
        """Write the queries by name, in order of window; rows of A pass the filter if v is below the bound."""
        # A sum modulo of uniform numbers is uniform whatever one of them is: every pair is as likely to join.
        join = f"(A.u + B.u) % {PARTS} < {round(self.s_join * PARTS)}"
        keep = f" AND A.v < {bound}" if self.filtered else ""
        found = {}
        for number, window in enumerate(self.windows, 1):
            size = f"RANGE {round(window * self.pace * 1_000)} MILLISECONDS"
            where = join + (keep if number > 1 else "")
            found[f"q{number}"] = f"SELECT A.u AS u FROM A [{size}], B [{size}] WHERE {where}"
        return found


def small_large(queries: int) -> tuple[float, ...]:
    """List the windows of Small-Large (Table 8.2): one half evenly up to 6 s, the other from 24 s to 30 s.

    >>> small_large(12)
    (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0)
    """
    half = queries // 2
    steps = [6 * (at + 1) / half for at in range(half)]
    return (*steps, *(24 + step for step in steps))


SEED = 8


@dataclass(frozen=True)
class Tally:
    """What a run counted.

    `rows` arrived on each stream, of A `passing` pass the filter; `tested` times one was held against it. `entered`
    rows went into joins, which examined `probed` pairs that both rows lived to see; `found` results were made,
    `decided` times one was held against a window or a filter; `delivered` went to each query, by ascending window.
    `state_rows` is the mean of the rows in the states of the joins once the widest window is full, `slices` how many
    the engine has made by its own costs. `moved` rows went on to another slice, and `boundaries` adds up the slices of
    each step.
    """

    rows: Mapping[str, int]
    passing: int
    tested: int
    entered: int
    probed: int
    found: int
    decided: int
    delivered: tuple[int, ...]
    state_rows: float
    slices: int
    moved: int
    boundaries: int

    @property
    def results(self) -> int:
        """The results delivered, to all queries."""
        return sum(self.delivered)


@lru_cache(maxsize=256)
def tally(setting: WangSetting, sharing: str) -> Tally:
    """Run the setting's arrivals through an engine that shares this way; figures with equal settings share the run."""
    engine = Engine(seed=SEED, sharing=sharing)
    for source in setting.sources:
        engine.create_stream(source.name, source.schema, timestamp="ts")
    arrivals = Workload(setting.sources, "", SEED).arrivals(setting.until)
    values = arrivals["A"].rows["v"].to_numpy()
    # The share that passes is to be the setting's, not one that chance made of it.
    bound = int(np.quantile(values, setting.s_sigma, method="nearest"))
    queries = setting.queries(bound)
    for name, sql in queries.items():
        engine.add_query(name, sql, plan="(A B)")
    tick = setting.tick * setting.pace
    delivered = dict.fromkeys(queries, 0)
    held, boundaries = [], 0
    for number in range(ceil(setting.until / tick - 1e-9)):
        begin, end = number * tick, min((number + 1) * tick, setting.until)
        for name, table in engine.push({a: rows.between(begin, end) for a, rows in arrivals.items()}).items():
            delivered[name] += table.num_rows
        boundaries += _slices(engine)
        if end > setting.windows[-1] * setting.pace:
            # What has grown too old in a step goes with the next step, even an empty one.
            engine.push({})
            held.append(_state_rows(engine))
    operators = {key.operator: counted for key, counted in engine.manifest.operators.items()}
    joins = _sum(operators, "join")
    return Tally(
        rows={name: progress.rows for name, progress in engine.manifest.progress.items()},
        passing=int((values < bound).sum()),
        tested=_sum(operators, "source").predicates,
        entered=joins.rows_in,
        # Candidates are all pairs of a step's rows with the states; the predicate meets those that are not too old.
        probed=joins.predicates,
        found=joins.rows_out,
        decided=_sum(operators, "route").predicates,
        delivered=tuple(delivered.values()),
        state_rows=sum(held) / len(held),
        slices=_slices(engine),
        moved=sum(counted.moved for counted in operators.values()),
        boundaries=boundaries,
    )


def _sum(operators: Mapping[OperatorId, Counters], kind: str) -> Counters:
    return sum((counted for id, counted in operators.items() if id.kind == kind), Counters())


def _slices(engine: Engine) -> int:
    return max((len(chain.cuts) for chain in engine.manifest.chains.values()), default=0) or 1


def _state_rows(engine: Engine) -> int:
    # Join states are kept under their index; the base rows below them do not count.
    return sum(
        listing.live
        for lane in engine.manifest.lane_states.values()
        for id, listing in lane.states.items()
        if id.kind is not StateKind.ROWS
    )


def pull_up(run: Tally, filtered: int) -> Cost:
    """Price one join, a router, and filters behind it (Equation 4.1)."""
    windows = run.found * len(run.delivered)
    return _cost(
        run,
        probe=run.probed,
        purge=run.entered,
        # The engine's router holds each result against the widest window, too, which decides nothing.
        route=windows - run.found,
        filter=run.decided - windows if filtered else 0,
    )


def push_down(run: Tally, filtered: int) -> Cost:
    """Price a split, a join for each part, a router behind the wide one, a union for Q_1 (Equation 4.2)."""
    return _cost(
        run,
        split=run.tested,
        probe=run.probed,
        purge=run.entered,
        route=run.decided - run.found,
        union=run.delivered[0] if filtered else 0,
    )


def mem_opt(run: Tally, filtered: int) -> Cost:
    """Price a slice per query, a filter behind the first, a union by punctuation per later query (Equation 5.1).

    Of A only the rows that pass enter the slices behind the filter, where Equation 5.1 has all of them purge.
    """
    later = len(run.delivered) - 1
    rows = sum(run.rows.values())
    return _cost(
        run,
        probe=run.probed,
        purge=rows + later * (run.passing + run.rows["B"]),
        union=later * rows,
        filter=run.tested + run.delivered[0] * filtered,
    )


def chain(run: Tally, cuts: Sequence[int], c_sys: float) -> Cost:
    """Price slices that end with the windows of these numbers, counted from 1; no filters (§7.2, Fig. 7.2).

    A row pays C_sys in each slice. A merged slice has a router over the windows inside it; the queries that end in the
    first slice need no union.
    """
    within = (0, *run.delivered)
    rows = sum(run.rows.values())
    return _cost(
        run,
        probe=run.probed,
        purge=rows * len(cuts),
        system=rows * len(cuts) * c_sys,
        route=sum((within[end] - within[begin]) * (end - begin - 1) for begin, end in pairwise((0, *cuts))),
        union=rows * (len(run.delivered) - cuts[0]),
    )


def engine_work(run: Tally) -> float:
    """Price what the engine itself counted, in seconds, by the costs that its mode cpu_opt weighs chains with."""
    return (
        JoinUnitCosts().comparison * 1e-9 * run.probed
        + MEASURED.purge * run.moved
        + MEASURED.route * run.decided
        + MEASURED.boundary * run.boundaries
    )


def _cost(run: Tally, **cpu: float) -> Cost:
    return Cost(memory={"state": run.state_rows}, cpu=cpu)


MEM_OPT, PULL_UP, PUSH_DOWN = "mem_opt", "pull_up", "push_down"
RIVALS = (PULL_UP, PUSH_DOWN)

MIDDLE = 0.5


class OfThree(Figure, ABC):
    """A figure of this family: `drawn` over the rate, in `panels` by name: windows, S_sigma and S_join."""

    drawn: ClassVar[str]
    panels: ClassVar[Mapping[str, tuple[str, float, float]]]

    def runs(self, scale: Scale) -> Iterator[tuple[dict[str, Any], WangSetting]]:
        """Enumerate every setting, with its name in the data."""
        for panel, (windows, s_sigma, s_join) in self.panels.items():
            for rate in scale.pick(quick=(RATES[0], RATES[1], RATES[-1]), full=RATES):
                pace, run = scale.pick(quick=(0.5, 60.0), full=(1.0, RUN))
                yield {PANEL: panel, RATE: rate}, WangSetting(THREE[windows], rate, s_sigma, s_join, pace, run, FINE)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        draw_panels(canvas, data, self.panels, self.drawn)


def shared(setting: WangSetting) -> dict[str, tuple[Tally, Cost]]:
    """Compute what each way of sharing took, by its name."""
    runs = {case: tally(setting, case) for case in (MEM_OPT, PULL_UP, PUSH_DOWN)}
    costs = {
        MEM_OPT: mem_opt(runs[MEM_OPT], setting.filtered),
        PULL_UP: pull_up(runs[PULL_UP], setting.filtered),
        PUSH_DOWN: push_down(runs[PUSH_DOWN], setting.filtered),
    }
    return {case: (runs[case], cost) for case, cost in costs.items()}


def named(windows: str, s_sigma: float, s_join: float) -> str:
    """Name a panel.

    >>> named("Uniform", 0.5, 0.1)
    'Uniform, S_sigma 0.5, S_join 0.1'
    """
    return f"{windows}, S_sigma {s_sigma:g}, S_join {s_join:g}"
