"""HybMig's experiments (§5): the clique join, the plans of Table 4, the parameters of Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

from midstream.embedded.stream_generator import Schedule
from midstream.lab.figure import Scale
from midstream.lab.generator import Even, Workload, equal, query
from midstream.lab.trace import Trace
from midstream.lab.virtual_processor import PlanSwitch, Processor

WINDOWS, RATES, STREAMS = (1.0, 2.0, 3.0, 4.0, 5.0), (0.4, 0.7, 1.0, 1.3, 1.6), (4, 5, 6, 7)
"""Table 3: w in minutes, tau in rows a second, n; the defaults are 3, 1 and 6."""

RARE = 20
"""How many times the rare stream's domain exceeds the others': sel_l / sel_h = 0.05 / 0.0025."""

SPAN = 1.2
"""The migration phase that is measured, in windows (§5.1)."""

CLIQUE = (
    "A clique join of nested loops on one key; the first stream, after the migration's start the last one, draws from "
    "a domain 20 times as large (the paper's 0.05 / 0.0025). Keys are evenly spread in every stream, for by chance "
    "alone one run has many times another's work. The paper's minute lasts 12 (quick) or 30 virtual seconds. One "
    "window of warm-up instead of five, for no state remembers more."
)

SETTING = (
    f"{CLIQUE} A window holds a ninth (quick) or a third of the paper's rows and the common domain 3 or 8 keys instead "
    "of 20, so that a row meets 7 rows of a window where in the paper it meets 9: a join still multiplies, but no "
    "window holds millions of combinations."
)
"""For what is counted over a whole run."""

SMOOTH = (
    f"{CLIQUE} A window holds the paper's 180 rows, and the common domain 60 (quick) or 45 keys instead of 20, for at "
    "20 a second makes tens of thousands of results, which the paper's 42.8 a second cannot have been."
)
"""For what is shown second by second."""

PLAIN: Mapping[str, Any] = {"decompose": False}
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "moving_state": ("moving_state", PLAIN),
    "parallel_track": ("parallel_track", {**PLAIN, "hold_new": True}),
    "hybmig": ("hybmig", {}),
}
"""The methods of §5.1 and their options: PT as in Zhu runs both plans whole and holds the new one's results."""


@dataclass(frozen=True)
class Machine:
    """How a scale stands to the paper.

    The paper's minute lasts `minute` virtual seconds and brings `rows` times the paper's rows; all but the rare stream
    draw from `domain` keys; the processor makes `speed` comparisons a virtual second.
    """

    minute: float
    rows: float
    domain: int
    speed: float

    @staticmethod
    def of(scale: Scale) -> Machine:
        """Choose the machine of `SETTING`: PT at tau = 1.6 is a little too much for it, HybMig is not."""
        return scale.pick(quick=Machine(12.0, 1 / 9, 3, 1_450_000.0), full=Machine(30.0, 1 / 3, 8, 8_300_000.0))

    @staticmethod
    def smooth(scale: Scale) -> Machine:
        """Choose the machine of `SMOOTH`: it can serve every plan, but is not much faster than that."""
        return scale.pick(quick=Machine(12.0, 1.0, 60, 1_000_000.0), full=Machine(30.0, 1.0, 45, 1_000_000.0))


@dataclass(frozen=True)
class HybMigTask:
    """A migration of Table 4 under a setting of Table 3: `shape` is `right`, `bushy` or `sharing` (§5.2)."""

    machine: Machine
    window: float = 3.0
    rate: float = 1.0
    streams: int = 6
    shape: str = "right"
    ticks: int = 36
    seed: int = 0
    span: float = SPAN

    @property
    def seconds(self) -> float:
        """The window in virtual seconds."""
        return self.window * self.machine.minute

    @property
    def start(self) -> float:
        """The second at which the migration begins: after one window and a tick, when the states are fullest."""
        return self.seconds + self.tick

    @property
    def tick(self) -> float:
        """The seconds between steps, of which there are `ticks` in a window."""
        return self.seconds / self.ticks

    @property
    def end(self) -> float:
        """The end of the migration phase."""
        return self.start + self.span * self.seconds

    @property
    def names(self) -> Sequence[str]:
        """The streams."""
        return "ABCDEFG"[: self.streams]

    def workload(self, *, nested: bool = True) -> Workload:
        """Build a clique of nested-loop joins on one key; before the start A is rare, after it the last stream."""
        common, rare = self.machine.domain, self.machine.domain * RARE
        key = {
            self.names[0]: Schedule(((0.0, rare), (self.start, common))),
            self.names[-1]: Schedule(((0.0, common), (self.start, rare))),
        }
        rate = self.rate * self.machine.rows * 60.0 / self.machine.minute
        sources = tuple(Even(name, rate, {"k": key.get(name, Schedule.of(common))}) for name in self.names)
        return Workload(sources, query(self.names, self.predicates(nested), self.range), self.seed)

    def predicates(self, nested: bool) -> list[str]:
        """Write a condition between each two streams."""
        return [equal(f"{one}.k", f"{other}.k", nested=nested) for one, other in combinations(self.names, 2)]

    @property
    def range(self) -> str:
        """The window in the query's text."""
        return f"RANGE {round(self.seconds)} SECONDS"

    @property
    def old(self) -> str:
        """P_old: the extreme left-deep plan."""
        return left_deep(self.names)

    @property
    def new(self) -> str:
        """P_new of the shape."""
        return {"right": right_deep, "bushy": bushy, "sharing": sharing}[self.shape](self.names)

    def play(self, strategy: str, options: Mapping[str, Any]) -> Trace:
        """Run this migration; equal runs are done once, however many figures show them."""
        return _played(self, strategy, tuple(sorted(options.items())))

    def method(self, name: str) -> Trace:
        """Run one of the `METHODS`."""
        return self.play(*METHODS[name])

    def undisturbed(self) -> Trace:
        """Run the old plan alone on a processor that is never behind, which shows when results are due."""
        return _undisturbed(self)

    def at(self, **changes: Any) -> HybMigTask:
        """Change parameters of the task."""
        return replace(self, **changes)


@lru_cache(maxsize=256)
def _played(task: HybMigTask, strategy: str, options: tuple[tuple[str, Any], ...]) -> Trace:
    switch = PlanSwitch(task.start, task.new, strategy, dict(options))
    return Processor(task.machine.speed, task.tick).play(task.workload(), task.old, task.end, [switch])


@lru_cache(maxsize=16)
def _undisturbed(task: HybMigTask) -> Trace:
    # The same results by hash joins are sooner there.
    return Processor(float("inf"), task.tick).play(task.workload(nested=False), task.old, task.end)


def left_deep(names: Sequence[str]) -> str:
    """Write the extreme left-deep plan.

    >>> left_deep("ABCD")
    '(((A B) C) D)'
    """
    plan = names[0]
    for name in names[1:]:
        plan = f"({plan} {name})"
    return plan


def right_deep(names: Sequence[str]) -> str:
    """Write the extreme right-deep plan.

    >>> right_deep("ABCD")
    '(A (B (C D)))'
    """
    return names[0] if len(names) == 1 else f"({names[0]} {right_deep(names[1:])})"


def bushy(names: Sequence[str]) -> str:
    """Write the right-deep plan with streams n - 4 and n - 3, counted from 0, joined first (§5.1).

    >>> bushy("ABCD"), bushy("ABCDEF")
    ('((A B) (C D))', '(A (B ((C D) (E F))))')
    """
    plan = f"({right_deep(names[-4:-2])} {right_deep(names[-2:])})"
    for name in reversed(names[:-4]):
        plan = f"({name} {plan})"
    return plan


def sharing(names: Sequence[str]) -> str:
    """Write the left-deep plan with its last two streams joined first (§5.2).

    >>> sharing("ABCDEF")
    '((((A B) C) D) (E F))'
    """
    return f"({left_deep(names[:-2])} {right_deep(names[-2:])})"
