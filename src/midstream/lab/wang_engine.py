"""The engine under Wang's workload: what it counted and held, in one way of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from midstream.embedded import Engine
from midstream.lab.generator import Workload
from midstream.lab.wang_queries import WangSetting
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId, StateKind

SEED = 8

TICK = 1.0
"""Seconds of the paper in a step; it decides how many slices mode cpu_opt makes, and which chunks filters spare."""


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
    tick = TICK * setting.pace
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
