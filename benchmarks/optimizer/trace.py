"""What a run did, step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from benchmarks.plan_change.answer import marks
from midstream.model.counters import Counters
from midstream.model.events import Event, MigrationBegun, PlanReviewed
from midstream.optimizer.cost.units import JoinUnitCosts

UNITS = JoinUnitCosts()


def work_of(counted: Counters) -> float:
    """The nanoseconds that an engine's counters stand for, by the optimizer's units: the same on every machine.

    >>> work_of(Counters(comparisons=10))
    200.0
    """
    joined = UNITS.joining(counted.rows_in, counted.comparisons, counted.rows_out)
    return joined + UNITS.insert * (counted.inserted + counted.moved) + UNITS.route * counted.hops


@dataclass(frozen=True)
class Trace:
    """A run: of each step the work in nanoseconds, the seconds and the results; how reviews went; what was answered.

    `busy` are the seconds of processor time of all steps, `reviewing` those of them that reviews took. `reviews` are
    the steps with a review, `switches` those in which another plan began, and which one.
    """

    work: tuple[float, ...]
    seconds: tuple[float, ...]
    results: tuple[int, ...]
    busy: float
    reviewing: float
    reviews: tuple[int, ...]
    switches: tuple[tuple[int, str], ...]
    plan: str
    mark: int
    comparisons: int = 0


@dataclass
class Answers:
    """A sum of hashes over the results of all queries, which does not depend on their order."""

    mark: int = 0
    counts: list[int] = field(default_factory=list)

    def keep(self, tables: Iterable[pa.Table]) -> None:
        """Keep what a step answered."""
        count = 0
        for number, table in enumerate(tables):
            count += table.num_rows
            self.mark = (self.mark + (number + 1) * int(marks(table).sum())) % 2**63
        self.counts.append(count)


def reviews_in(events: Iterable[Event]) -> tuple[int, ...]:
    """The steps with a review."""
    return tuple(event.step for event in events if isinstance(event, PlanReviewed))


def switches_in(events: Iterable[Event]) -> tuple[tuple[int, str], ...]:
    """The steps in which queries began to move, and to which plan; those that move together count once."""
    return tuple(dict.fromkeys((event.step, event.new) for event in events if isinstance(event, MigrationBegun)))
