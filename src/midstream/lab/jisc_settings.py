"""JISC's experiments (§6): left-deep plans of many hash joins on one key, over streams without chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded.stream_generator import Schedule
from midstream.lab.generator import Even, Workload, equal, query
from midstream.lab.hybmig_settings import left_deep
from midstream.lab.trace import Trace
from midstream.lab.virtual_processor import PlanSwitch, Prices, Processor
from midstream.model.window import SECOND

ROW = 0.001
"""A row of every stream comes each millisecond."""

OPERATIONS = Prices(comparison=1.0, row=1.0, hop=1.0)
"""What stands for execution time: pairs compared, rows that enter an operator, hops of an eddy."""

STREAMS = (
    "Every stream brings a row each millisecond and every key once in a window, so that each probe of a join finds one "
    "partner: with uniformly random keys, the paper's, results of 100 joins are all or nothing. Windows of as many "
    "milliseconds stand for windows of so many rows, 10,000 in the paper."
)

METHODS: Mapping[str, Mapping[str, Any]] = {
    "jisc": {},
    "parallel_track": {"decompose": False, "purge": "zhu"},
}
"""The strategies that migrate between trees, with their options: PT is Zhu's, which knows nothing of shared parts."""


@dataclass(frozen=True)
class Regular(Even):
    """A row each so many seconds."""

    @override
    def rows(self, start: float, until: float, generator: np.random.Generator) -> pa.Table:
        assert not isinstance(self.rate, Schedule)
        numbers = np.arange(round(start * self.rate), round(until * self.rate))
        times = np.round(numbers * (SECOND / self.rate)).astype(np.int64)
        found = pa.table({**dict.fromkeys(self.columns, np.zeros(len(times), np.int64)),
                          "ts": pa.array(times, pa.timestamp("us"))})  # fmt: skip
        return self.spread(found, generator)


@dataclass(frozen=True)
class JoinChain:
    """A query of so many joins over windows of so many rows, all on one key; `steps` to a window."""

    joins: int
    window: int
    steps: int = 5
    nested: bool = False
    seed: int = 0

    @property
    def names(self) -> Sequence[str]:
        """The streams, bottom-up in the first plan."""
        return [f"S{at}" for at in range(self.joins + 1)]

    @property
    def seconds(self) -> float:
        """The window in virtual seconds."""
        return self.window * ROW

    @property
    def tick(self) -> float:
        """The length of a step."""
        return self.seconds / self.steps

    @property
    def rows(self) -> int:
        """The number of rows of all streams in a window."""
        return self.window * (self.joins + 1)

    def workload(self) -> Workload:
        """Build the streams and the query."""
        sources = tuple(Regular(name, 1 / ROW, {"k": self.window}) for name in self.names)
        # Equalities imply each other; of other conditions every pair of streams needs its own, whatever the plan.
        pairs = combinations(self.names, 2) if self.nested else pairwise(self.names)
        predicates = [equal(f"{one}.k", f"{other}.k", nested=self.nested) for one, other in pairs]
        return Workload(sources, query(self.names, predicates, f"RANGE {self.window - 1} MILLISECONDS"), self.seed)

    @property
    def old(self) -> str:
        """The plan before the first transition."""
        return left_deep(self.names)

    @property
    def best(self) -> str:
        """The plan with the two topmost streams exchanged: one state is incomplete (§5.2, Fig. 5)."""
        return left_deep([*self.names[:-2], self.names[-1], self.names[-2]])

    @property
    def worst(self) -> str:
        """The plan with the lowest and the topmost stream exchanged: every state is incomplete (§5.2, Fig. 6)."""
        return left_deep([self.names[-1], *self.names[1:-1], self.names[0]])

    @property
    def eddy(self) -> str:
        """CACQ's plan."""
        return f"eddy({' '.join(self.names)})"

    def play(self, plan: str, windows: float, switches: Sequence[PlanSwitch] = ()) -> Trace:
        """Run for a number of windows; equal runs are done once."""
        return _played(self, plan, windows, tuple((s.at, s.plan, s.strategy) for s in switches))


def switch(at: float, plan: str, strategy: str) -> PlanSwitch:
    """Plan a transition by one of the `METHODS`, at a second."""
    return PlanSwitch(at, plan, strategy, METHODS[strategy])


@lru_cache(maxsize=256)
def _played(chain: JoinChain, plan: str, windows: float, switches: tuple[tuple[float, str, str], ...]) -> Trace:
    processor = Processor(float("inf"), chain.tick, OPERATIONS)
    return processor.play(chain.workload(), plan, windows * chain.seconds, [switch(*s) for s in switches])
