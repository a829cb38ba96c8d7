"""`A EXCEPT ON (cols) B`: the rows of A that no row of B matches, as a log of changes (JISC §4.7).

The paper's set difference keeps inner and outer states and moves rows between them. Here a matching row blocks its
partner for exactly the lifetime of their pair, so the relation at any time follows from lifetimes alone: a row is in
while it is alive and no block covers it. The log is what changes between two watermarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.logical.query import Difference
from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.binding import compile_source
from midstream.operators.compile import compile_pair
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.sorted_run import SortedRun


@dataclass(frozen=True)
class DifferenceOperator(ResultOperator):
    """Writes '+' when a row of the minuend enters the answer and '-' when it leaves; the last column is `_op`."""

    roots: tuple[Operator, ...]

    @override
    def own_roots(self) -> tuple[Operator, ...]:
        return self.roots

    @override
    @property
    def slack(self) -> int:
        # What ended at the last watermark still has to be seen ending.
        return 1

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        assert isinstance(self.query.on_top, Difference)
        label = self.query.on_top.minuend
        gathered = []
        for spec, delta in zip(self.kept, deltas, strict=True):
            state = lane.join(spec)
            state.insert(SortedRun(None, delta))
            whole = concatenate([*(run.combinations for run in state.old), delta])
            gathered.append((whole.refs[label], whole.valid_from[EVENT_TIME], self.ends(lane, whole)))
        rows, *blocks = gathered
        blocked = [np.concatenate(column) for column in zip(*blocks, strict=True)]
        refs, times, entering = changes(rows, (blocked[0], blocked[1], blocked[2]), self.span(lane))
        changed = Combinations({label: refs}, {}, {})
        read = with_time(lane.reader(self.rows, changed), times)
        operations = pa.array(np.where(entering, "+", "-"), pa.string())
        found = self.answer([*self.values(read, len(refs)), operations], times)
        kept, dead = self.judged(read, times)
        return found if kept is None else Answer(found.table.filter(pa.array(kept)), times[kept], dead)


Lifetimes = tuple[Words, Words, Words]
"""Row numbers, first and last microsecond of each lifetime."""


def changes(rows: Lifetimes, blocks: Lifetimes, span: tuple[int, int]) -> tuple[Words, Words, npt.NDArray[np.bool_]]:
    """The changes within the half-open span: row number, time, whether it enters; in order of time.

    >>> n = np.array
    >>> out = changes((n([7]), n([10]), n([20])), (n([7]), n([12]), n([15])), (0, 100))
    >>> [o.tolist() for o in out]
    [[7, 7, 7, 7], [10, 12, 16, 21], [True, False, True, False]]
    """
    refs, times, alive, blocked = _breakpoints(*_touched(rows, blocks, span))
    order = np.lexsort((times, refs))
    refs, times, alive, blocked = refs[order], times[order], np.cumsum(alive[order]), np.cumsum(blocked[order])
    # Only the last breakpoint of one row and time shows the relation at that time.
    last = np.ones(len(refs), np.bool_)
    last[:-1] = (refs[1:] != refs[:-1]) | (times[1:] != times[:-1])
    refs, times, inside = refs[last], times[last], (alive[last] > 0) & (blocked[last] == 0)
    before = np.zeros(len(refs), np.bool_)
    before[1:] = inside[:-1] & (refs[1:] == refs[:-1])
    changed = (inside != before) & (times >= span[0]) & (times < span[1])
    refs, times, inside = refs[changed], times[changed], inside[changed]
    order = np.argsort(times, kind="stable")
    return refs[order], times[order], inside[order]


def _touched(rows: Lifetimes, blocks: Lifetimes, span: tuple[int, int]) -> tuple[Lifetimes, Lifetimes]:
    """Return the lifetimes of the rows that something begins or ends for within the span. The others do not change."""

    def touched(lifetimes: Lifetimes) -> Words:
        refs, begin, end = lifetimes
        begins, ends = (begin >= span[0]) & (begin < span[1]), (end >= span[0] - 1) & (end < span[1] - 1)
        return refs[begins | ends]

    refs = np.unique(np.concatenate([touched(rows), touched(blocks)]))

    def of_them(lifetimes: Lifetimes) -> Lifetimes:
        chosen = np.isin(lifetimes[0], refs)
        return lifetimes[0][chosen], lifetimes[1][chosen], lifetimes[2][chosen]

    return of_them(rows), of_them(blocks)


def _breakpoints(rows: Lifetimes, blocks: Lifetimes) -> tuple[Words, Words, Words, Words]:
    (row, begin, end), (blocked, from_, to) = rows, blocks
    after = np.minimum(end, FOREVER - 1) + 1
    free = np.minimum(to, FOREVER - 1) + 1
    one, two = np.ones(len(row), np.int64), np.ones(len(blocked), np.int64)
    none, nothing = np.zeros(len(row), np.int64), np.zeros(len(blocked), np.int64)
    return (
        np.concatenate([row, row, blocked, blocked]),
        np.concatenate([begin, after, from_, free]),
        np.concatenate([one, -one, nothing, nothing]),
        np.concatenate([none, none, two, -two]),
    )


class DifferenceCompiler(ResultCompiler):
    """Compiles `A EXCEPT ON (cols) B`: its roots are A and the join of A with each that is subtracted."""

    name = "difference"
    node = Difference

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        binding, difference = asked.binding, asked.query.on_top
        assert isinstance(difference, Difference)
        minuend, subtrahends = difference.minuend, difference.subtrahends
        roots: tuple[Operator, ...] = (
            compile_source(binding, minuend),
            *(compile_pair(binding, minuend, other) for other in subtrahends),
        )
        labels = ((minuend,), *((minuend, other) for other in subtrahends))
        kept = tuple(binding.state(one, "scan") for one in labels)
        return DifferenceOperator(asked.query, binding.rows(), kept, roots)
