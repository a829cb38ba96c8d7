"""LEFT, RIGHT and FULL JOIN, semi and anti joins over windows: what is answered of rows by whether they are matched.

Below runs the inner join, by any plan. Of its results one is kept for each matched row, until no partner of it can come
any more. Any result serves, so what is lost, or left behind by a change of lanes, is computed again from the join's
states; nothing is remembered that a migration had to move.
A row's fate has a time that event times alone decide, and is told once the watermark has passed it: the end of the
row's window where it is not matched, the time of its first match in a semi join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.language.evaluate import fails, holds
from midstream.language.expression import Column
from midstream.language.query import OuterJoin
from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.source import SourceOperator
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, concatenate, indices
from midstream.state.keys import stable_sort
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class OuterJoinOperator(ResultOperator):
    """The results of the inner join, and rows of the `preserved` sources, as the query's `OuterJoin` says."""

    preserved: tuple[SourceOperator, ...]

    @override
    @property
    def slack(self) -> int:
        # A match may be over as soon as its newer row is there; a row's fate is told at the end of its window.
        windows = [self.rows[source.spec.label].window for source in self.preserved]
        return max(window.size for window in windows if window is not None)

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        assert self.query.outer is not None
        (delta,) = deltas
        state, span, kind = lane.join(self.kept[0]), self.span(lane), self.query.outer.kind
        old = [run.combinations for run in state.old]
        new = self._new_matches(delta, old, span)
        state.insert(SortedRun(None, new))
        matches = [*old, new]
        if kind == "semi":
            parts = [first_matches(matches, self.preserved[0].spec.label, span)]
        else:
            parts = [self._unmatched(lane, source, matches, span) for source in self.preserved]
        if kind == "outer":
            parts.append((Combinations(delta.refs, {}, {}), delta.valid_from[EVENT_TIME]))
        return _together([self._answered(lane, *part) for part in parts])

    def _new_matches(self, delta: Combinations, old: Sequence[Combinations], span: tuple[int, int]) -> Combinations:
        """Of the step's results the earliest for each preserved row, unless an older one serves."""
        assert self.query.outer is not None
        chosen = np.zeros(len(delta), np.bool_)
        for source in self.preserved:
            refs, times = delta.refs[source.spec.label], delta.valid_from[EVENT_TIME]
            at = earliest(refs, times)
            for found in old:
                # One that comes out of order may be the first match all the same, until that has been told.
                told = found.valid_from[EVENT_TIME] < (span[0] if self.query.outer.kind == "semi" else FOREVER)
                at = at[~np.isin(refs[at], found.refs[source.spec.label][told])]
            chosen[at] = True
        return delta.take(chosen)

    def _unmatched(
        self, lane: Lane, source: SourceOperator, matches: Sequence[Combinations], span: tuple[int, int]
    ) -> tuple[Combinations, Words]:
        """The rows of a source whose windows the watermark passes in this step, and that join nothing."""
        label = source.spec.label
        rows = concatenate([source.content(lane), source.delta(lane)])
        rows, ends = self._until(lane, label, rows, span)
        at = indices((ends >= span[0]) & (ends < span[1]))
        refs, ends = rows.refs[label][at], ends[at]
        for found in matches if len(refs) else ():
            alone = indices(~np.isin(refs, found.refs[label]))
            refs, ends = refs[alone], ends[alone]
        return Combinations({label: refs}, {}, {}), ends

    def _until(self, lane: Lane, label: str, rows: Combinations, span: tuple[int, int]) -> tuple[Combinations, Words]:
        """The rows of a source of which some may be unmatched from this step on, and how long each may be matched."""
        assert self.query.outer is not None
        until = [(column, size) for column, size in self.query.outer.until if column.alias == label]
        if not until or not len(rows):
            return rows, rows.valid_to[EVENT_TIME]
        rows = rows.take(indices((rows.valid_to[EVENT_TIME] >= span[0]) & (rows.valid_from[EVENT_TIME] < span[1])))
        read = lane.reader(self.rows, Combinations({label: rows.refs[label]}, {}, {}))
        known = [np.asarray(read(c).cast(pa.int64()).fill_null(FOREVER)) + size for c, size in until]
        # A row that comes late, having waited for a partner itself, can be told at once.
        least = np.maximum(np.minimum.reduce(known), rows.valid_from[EVENT_TIME])
        return rows, np.minimum(least, rows.valid_to[EVENT_TIME])

    def _answered(self, lane: Lane, rows: Combinations, times: Words) -> Answer:
        """Results of these rows, in order of time; columns of a source that is not among them are NULL."""
        assert self.query.outer is not None
        if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
            order = stable_sort(times)[0]
            rows, times = rows.take(order), times[order]
        condition = self.query.outer.condition
        if condition is not None and len(times):
            read, checked = self._reader(lane, rows, times), self.query.checked
            satisfied = holds(condition, read, len(times))
            at = indices(satisfied | fails(condition, read, len(times)) if checked else satisfied)
            rows, times = rows.take(at), times[at]
        kept, dead = self.judged(self._reader(lane, rows, times), times)
        if kept is not None:
            rows, times = rows.take(kept), times[kept]
        return replace(self.answer(self.values(self._reader(lane, rows, times), len(times)), times), dead=dead)

    def _reader(self, lane: Lane, rows: Combinations, times: Words) -> Callable[[Column], pa.Array]:
        """How columns of the results are read: those of a source that is not among the rows are NULL."""
        own = lane.reader(self.rows, rows)
        return with_time(lambda c: own(c) if c.alias in rows.refs else pa.nulls(len(times), c.type), times)


def first_matches(matches: Sequence[Combinations], label: str, span: tuple[int, int]) -> tuple[Combinations, Words]:
    """The rows of a source whose first match is within the half-open span, and the time of that.

    >>> def match(time, row):
    ...     return Combinations({"A": np.array([row])}, {EVENT_TIME: np.array([time])}, {})
    >>> rows, times = first_matches([match(5, 7), match(3, 7), match(4, 8), match(2, 9), match(4, 9)], "A", (3, 10))
    >>> rows.refs["A"].tolist(), times.tolist()
    ([7, 8], [3, 4])
    """
    refs = np.concatenate([found.refs[label] for found in matches])
    times = np.concatenate([found.valid_from[EVENT_TIME] for found in matches])
    within = indices((times >= span[0]) & (times < span[1]))
    known = refs[times < span[0]]
    refs, times = refs[within], times[within]
    first = earliest(refs, times)
    first = first[~np.isin(refs[first], known)]
    return Combinations({label: refs[first]}, {}, {}), times[first]


def earliest(refs: Words, times: Words) -> Words:
    """For each row, in order of their numbers, the index at which it stands with the least time.

    >>> earliest(np.array([7, 8, 7]), np.array([5, 4, 3])).tolist()
    [2, 1]
    """
    if not len(refs):
        return refs
    rows = refs - refs.min()
    least = np.full(rows.max() + 1, FOREVER)
    np.minimum.at(least, rows, times)
    place = np.full(len(least), -1)
    # Of several that are put in one place the last remains.
    at = indices(times == least[rows])[::-1]
    place[rows[at]] = at
    return place[place >= 0]


def _merged(ascending: Sequence[Words]) -> Words:
    """The indices that sort the concatenation of ascending columns, ties in their present order.

    >>> _merged([np.array([1, 4, 4]), np.array([2, 4])]).tolist()
    [0, 3, 1, 2, 4]
    """
    first, *others = ascending
    if len(others) > 1:
        return stable_sort(np.concatenate(ascending))[0]
    (second,) = others
    order = np.empty(len(first) + len(second), np.int64)
    order[np.arange(len(first)) + second.searchsorted(first, "left")] = np.arange(len(first))
    order[np.arange(len(second)) + first.searchsorted(second, "right")] = np.arange(len(second)) + len(first)
    return order


def state_of_matches(joined: StateSpec, outer: OuterJoin) -> StateSpec:
    """The state of some results of a join, apart from that of all of them, which others may use."""
    scope = f"{joined.signature.scope} matching {outer.kind} {' '.join(outer.preserved)}"
    return replace(joined, signature=replace(joined.signature, scope=scope))


def _together(answers: Sequence[Answer]) -> Answer:
    """Several answers as one, in order of time."""
    if len(answers) == 1:
        return answers[0]
    dead = together(*(answer.dead for answer in answers))
    there = [answer for answer in answers if len(answer.times)]
    if len(there) < 2:
        return replace((there or answers)[0], dead=dead)
    times = np.concatenate([answer.times for answer in there])
    order = _merged([answer.times for answer in there])
    table = pa.concat_tables([answer.table for answer in there]).combine_chunks()
    return Answer(table.take(pa.array(order)), times[order], dead)
