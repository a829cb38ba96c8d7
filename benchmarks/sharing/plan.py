"""What is measured in one go: the workloads, the paces, and how long anything may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.sharing.pace import MANY, PACE, QUICK, Pace
from benchmarks.sharing.workload import DISTRIBUTIONS, FILTERS, Workload

CHAINS = ("mem_opt", "cpu_opt", "auto")
"""The modes that keep a chain."""

MANY_FROM = 1_000
ISOLATED_STEPS = 2
"""Steps that are measured of a thousand isolated queries, and only with uniform windows and no filters."""


@dataclass(frozen=True)
class Plan:
    """One go."""

    workloads: tuple[Workload, ...]
    pace: Pace
    many: Pace
    scaling_results: tuple[int, ...]
    scaling: Pace
    crowd: Workload
    newcomer: Pace
    spark_counts: tuple[int, ...]
    spark: Pace
    spark_budget: float
    spark_crowd: Workload
    spark_newcomer: Pace

    def pace_of(self, workload: Workload) -> Pace:
        """How a workload is run."""
        return self.many if workload.queries >= MANY_FROM else self.pace


def full() -> Plan:
    """Everything."""
    return Plan(
        workloads=tuple(_workloads()),
        pace=PACE,
        many=MANY,
        scaling_results=(10_000, 100_000, 1_000_000),
        scaling=Pace(0, history=(10, 10, 10), settle=2, measured=10),
        crowd=Workload(1_000, "uniform", "nested"),
        newcomer=MANY,
        spark_counts=(1, 4, 12, 36, 100, 1_000),
        spark=Pace(1_000, history=(30,), settle=2, measured=4, tick=5),
        spark_budget=100,
        spark_crowd=Workload(1_000, "uniform", "nested"),
        spark_newcomer=Pace(200, history=(30,), settle=2, tick=5),
    )


def quick() -> Plan:
    """Enough to see that everything runs and agrees."""
    few = Pace(0, history=(30,), settle=1, measured=2)
    return Plan(
        workloads=(Workload(1), Workload(12, "mostly_small", "nested"), Workload(36, "small_large", "apart")),
        pace=QUICK,
        many=QUICK,
        scaling_results=(10_000,),
        scaling=few,
        crowd=Workload(50, "uniform", "nested"),
        newcomer=QUICK,
        spark_counts=(1, 3),
        spark=Pace(100, history=(30,), settle=0, measured=1, tick=5),
        spark_budget=30,
        spark_crowd=Workload(5, "uniform", "nested"),
        spark_newcomer=Pace(50, history=(30,), settle=0, tick=5),
    )


def _workloads() -> Sequence[Workload]:
    found = [Workload(1)]
    for count in (12, 36):
        found += [Workload(count, d, f) for f in FILTERS for d in DISTRIBUTIONS]
    for count in (100, 1_000):
        found += [Workload(count, d) for d in DISTRIBUTIONS]
        found += [Workload(count, "uniform", f) for f in FILTERS if f != "none"]
    return found
