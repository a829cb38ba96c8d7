"""Chain as scheduler of the lab's rounds, next to OM's round-robin (OM Table 1, after Babcock et al. 2003).

Queries like Q1 share one processor that is too slow in bursts, so that rows queue before their operators. Chain gives
all time to the operator that frees most memory a second; OM serves one query after another. In: rows of each query by
round, and the seconds of the processor in a round. Out: what is queued, and what each query got.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from midstream.lab.om_rounds import KEPT_COLUMNS, PROJECTION_TPR, SELECTION_TPR
from midstream.lab.om_streams import Numbers
from midstream.optimizer.cost.om import OmOperator

Pipeline = tuple[OmOperator, ...]


def q1(selectivity: float) -> Pipeline:
    """Build Q1's pipeline, selection first."""
    selection = OmOperator("selection", selectivity, SELECTION_TPR)
    return selection, OmOperator("projection", 1.0, PROJECTION_TPR, width=KEPT_COLUMNS)


def slopes(pipeline: Pipeline) -> list[float]:
    """Compute the memory that a row frees a second from each operator on, along the steepest way down from there.

    That is the lower envelope of Babcock's progress chart: an operator that frees nothing goes with those behind it.
    Answers are not queued, so the last operator frees all that is left.

    >>> [round(slope) for slope in slopes((OmOperator("a", 1.0, 100), OmOperator("b", 0.5, 100)))]
    [50, 100]
    """
    *before, _ = pipeline
    sizes = [*accumulate((one.sel * one.width for one in before), lambda size, part: size * part, initial=1.0), 0.0]
    rows = accumulate((one.sel for one in before), lambda share, part: share * part, initial=1.0)
    times = [0.0, *accumulate(share / one.tpr for share, one in zip(rows, pipeline, strict=True))]
    return [
        max((sizes[at] - sizes[end]) / (times[end] - times[at]) for end in range(at + 1, len(sizes)))
        for at in range(len(pipeline))
    ]


class Queues:
    """The rows that wait before each operator of each query, and what was given out."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self.pipelines = pipelines
        self.waiting = [[0.0] * len(pipeline) for pipeline in pipelines]
        self.given = [0.0] * len(pipelines)

    def run(self, query: int, operator: int, seconds: float) -> float:
        """Run an operator for at most so many seconds; return the seconds that are left."""
        own, waiting = self.pipelines[query][operator], self.waiting[query]
        rows = min(waiting[operator], seconds * own.tpr)
        waiting[operator] -= rows
        if operator + 1 < len(waiting):
            waiting[operator + 1] += rows * own.sel
        else:
            self.given[query] += rows * own.sel
        return max(seconds - rows / own.tpr, 0.0)

    def size(self) -> float:
        """Return what is queued, in rows of full width."""
        return sum(
            rows * width
            for pipeline, waiting in zip(self.pipelines, self.waiting, strict=True)
            for rows, width in zip(waiting, _widths(pipeline), strict=True)
        )


def _widths(pipeline: Pipeline) -> list[float]:
    # Of a row that waits before each operator.
    return [*accumulate((one.width for one in pipeline[:-1]), lambda width, part: width * part, initial=1.0)]


Scheduler = Callable[[Queues, float], None]


def chain(queues: Queues, seconds: float) -> None:
    """Give all time to the operator of the steepest slope that has rows, then to the next one."""
    steep = [(-slope, q, o) for q, own in enumerate(queues.pipelines) for o, slope in enumerate(slopes(own))]
    for _, query, operator in sorted(steep):
        # Within a chain the rows of an operator go on to those behind it, whose slope is no flatter.
        seconds = queues.run(query, operator, seconds)
        for behind in range(operator + 1, len(queues.pipelines[query])):
            seconds = queues.run(query, behind, seconds)


def round_robin(queues: Queues, seconds: float) -> None:
    """Give each query that has rows its share of the time, operators in order; what one leaves goes to the others."""
    while seconds > 1e-9 and (having := [q for q, waiting in enumerate(queues.waiting) if max(waiting) > 1e-6]):
        left = 0.0
        for query in having:
            share = seconds / len(having)
            for operator in reversed(range(len(queues.pipelines[query]))):
                share = queues.run(query, operator, share)
            left += share
        seconds = left


@dataclass(frozen=True)
class ScheduleCourse:
    """The course of a schedule: rows queued by round, of full width, and by query rows given out and the longest wait.

    A query waits in a round in which it has rows and gives none out.
    """

    queued: Numbers
    given: list[float]
    longest_wait: list[int]


def course(pipelines: Sequence[Pipeline], arrivals: Numbers, seconds: float, scheduler: Scheduler) -> ScheduleCourse:
    """Serve rounds of `seconds` each, in which so many rows (down) of each query (across) arrive."""
    queues, queued, waits = Queues(pipelines), list[float](), np.zeros((len(arrivals), len(pipelines)), np.int64)
    for at, come in enumerate(arrivals):
        before = list(queues.given)
        for own, rows in zip(queues.waiting, come.tolist(), strict=True):
            own[0] += rows
        having = [max(waiting) > 1e-6 for waiting in queues.waiting]
        scheduler(queues, seconds)
        queued.append(queues.size())
        idle = [has and after == then for has, then, after in zip(having, before, queues.given, strict=True)]
        waits[at] = np.where(idle, waits[at - 1] + 1 if at else 1, 0)
    return ScheduleCourse(np.array(queued), queues.given, waits.max(axis=0).tolist())
