"""One task of a migration in figures: what its old and new joins hold and do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, log

from midstream.optimizer.estimate import Joining
from midstream.optimizer.prediction import Situation
from midstream.optimizer.statistics import Sources
from midstream.plan.decompose import Task
from midstream.plan.tree import Form, Join, Plan

EULER = 0.5772
SLICES = 64  # of a window, where a sum stands for an integral


@dataclass(frozen=True)
class TaskFigures:
    """The joins of one task, old and new, children first.

    `window`: seconds until all rows that are alive at the start are spent; `filling`: until states that begin empty are
    full, on average. `entry_window`: until those rows are spent which an entry of the characteristics table needs old,
    for each entry the first of its sources. `height` is the old tree's. `left` are the joins of the plans that
    migrations under way leave.
    """

    old: list[Joining]
    new: list[Joining]
    window: float
    filling: float
    entry_window: float
    height: int
    left: list[Joining]

    @property
    def sources(self) -> Sources:
        """All sources below."""
        return self.new[-1].output.sources

    @property
    def missing(self) -> list[Joining]:
        """The joins whose output is a state that the new plan has and the old one lacks."""
        there = {j.output.sources for j in self.old if j.kept}
        return [j for j in self.new if j.kept and j.output.sources not in there | {self.sources}]

    @property
    def unmade(self) -> list[Joining]:
        """The joins that are missing, except those whose state a plan that is still being left keeps."""
        kept = {j.output.sources for j in self.left if j.kept}
        return [j for j in self.missing if j.output.sources not in kept]

    @property
    def unmatched(self) -> float:
        """The rows of the old plan's states that the new one lacks."""
        kept = {j.output.sources for j in self.new if j.kept} | {self.sources}
        return sum(j.output.rows for j in self.old if j.kept and j.output.sources not in kept)

    @property
    def inputs(self) -> float:
        """The rows of the inputs, which a plan that begins empty keeps once more."""
        made = {j.output.sources for j in self.new}
        sides = {side.sources: side.rows for j in self.new for side in (j.left, j.right)}
        return sum(rows for sources, rows in sides.items() if sources not in made)

    def left_to_old(self, lasts: float) -> float:
        """Estimate the old plan's comparisons while it serves only what the new one lacks (HybMig §3.2), for some
        seconds.

        A combination is looked at while its rows of some entry are all old. At time t a share 1 - t/W of each source's
        rows is, and only a new row of another source makes one.
        """
        if self.left:
            # Amid another migration it is the transition that serves, whole, until it ends within its own window.
            return sum(j.running for j in (*self.old, *self.left)) * lasts / 2
        return sum(j.running * min(sum(self._served(j, e, lasts) for e in lowest(self.new)), lasts) for j in self.old)

    def _served(self, joining: Joining, entry: Sources, lasts: float) -> float:
        here = joining.output.sources
        old = len(entry & here)
        left = 1 - min(lasts / self.window, 1.0) if self.window else 0.0
        return (len(here) - old) / len(here) * self.window * (1 - left ** (old + 1)) / (old + 1)

    def probed(self, joining: Joining) -> float:
        """Estimate how often a second the rows of the other side probe a missing state with a given key."""
        for above in self.new:
            for here, there in ((above.left, above.right), (above.right, above.left)):
                if here.sources == joining.output.sources:
                    return there.rate * _let_through(above)
        return 0.0

    def all_probed(self, joining: Joining) -> float:
        """Estimate the seconds until every key of a missing state is probed, as in the coupon collector's problem."""
        rate = self.probed(joining)
        above = [j for j in self.new if joining.output.sources in (j.left.sources, j.right.sources)]
        keys = 1 / max(_let_through(above[0]), 1e-12) if above else 1.0
        return (log(keys) + EULER) / rate if rate else inf


def pieces(situation: Situation) -> list[TaskFigures]:
    """Describe the tasks of a migration in figures, except those over a single source, which have no joins."""
    known: dict[Task, TaskFigures] = situation.figured
    known |= {task: _piece(situation, task) for task in situation.pieces if task not in known}
    return [known[task] for task in situation.pieces if known[task].new]


def share_probed(rate: float, window: float, sources: int) -> float:
    """Compute the share of a state's entries that are probed while they are alive, each `rate` times a second.

    >>> share_probed(0, 10, 2), round(share_probed(1e6, 10, 2), 2)
    (0.0, 0.98)
    """
    slices = [(i / SLICES, (i + 1) / SLICES) for i in range(SLICES)]
    return sum(
        (exp(-rate * window * begin) - exp(-rate * window * end)) * (1 - (begin + end) / 2) ** sources
        for begin, end in slices
    )


def lowest(joinings: list[Joining]) -> list[Sources]:
    """List the sources of each lowest join: an entry of the characteristics table (HybMig Fig. 9)."""
    made = {j.output.sources for j in joinings}
    below = [j.output.sources for j in joinings if j.left.sources not in made and j.right.sources not in made]
    return [sources for sources in below if sources != joinings[-1].output.sources]


def _piece(situation: Situation, task: Task) -> TaskFigures:
    sources = situation.statistics.sources
    before = task.piece(situation.old)
    old, new = situation.estimate.joinings(before), situation.estimate.joinings(task.piece(situation.new))
    windows = [sources[alias].window for alias in new[-1].output.sources] if new else [0.0]
    entries = [min(sources[alias].window for alias in entry) for entry in lowest(new)] if new else []
    filling = sum(windows) / len(windows)
    # A plan that is still being left is one piece with this one, however little of it the move is about.
    plans = situation.left if task == situation.pieces[0] else ()
    left = [replace(j, kept=j.kept and kept) for plan, kept in plans for j in situation.estimate.joinings(plan)]
    return TaskFigures(old, new, max(windows), filling, max(entries, default=0.0), _height(before), left)


def _height(plan: Plan) -> int:
    # As in Zhu §5.2: 1 for a single level of joins.
    if isinstance(plan, Form):
        return _height(plan.tree)
    return 1 + max(_height(plan.left), _height(plan.right)) if isinstance(plan, Join) else 0


def _let_through(joining: Joining) -> float:
    # Where there are no keys, the share that meets a given row.
    pairs = joining.left.rows * joining.right.rows
    return min((joining.pairs if joining.keyed else joining.output.rows) / pairs, 1.0) if pairs else 1.0
