"""LEFT, RIGHT and FULL JOIN, semi and anti joins over windows: what is answered of rows by whether they are matched.

Below runs the inner join, by any plan. Of its results one is kept for each matched row, until no partner of it can come
any more. Any result serves, so what is lost, or left behind by a change of lanes, is computed again from the join's
states; nothing is remembered that a migration had to move.
A row's fate has a time that event times alone decide, and is told once the watermark has passed it: the end of the
row's window where it is not matched, the time of its first match in a semi join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from midstream.expr.evaluate import fails, holds
from midstream.expr.expression import Column
from midstream.logical.query import OuterJoin
from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.binding import compile_source
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.operators.source import SourceOperator
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, indices
from midstream.state.gather import gather
from midstream.state.keys import stable_sort
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import RowsSpec, StateSpec

ABSENT = -1
"""The number of a row that is not there."""


@dataclass(frozen=True)
class PaddedRows:
    """By source label the numbers of rows, `ABSENT` where there is none; all columns int64 and of one length.

    >>> both, left = {"A": np.array([3]), "B": np.array([8])}, {"A": np.array([4, 5])}
    >>> rows = PaddedRows.of([left, both])
    >>> {label: refs.tolist() for label, refs in rows.take(np.array([2, 0])).refs.items()}
    {'A': [3, 4], 'B': [8, -1]}
    """

    refs: Mapping[str, Words]

    @staticmethod
    def of(parts: Sequence[Mapping[str, Words]]) -> PaddedRows:
        """The rows of all parts, in order; each part has its own sources."""
        counts = [len(next(iter(part.values()))) for part in parts]
        labels = dict.fromkeys(label for part in parts for label in part)

        def numbers(label: str) -> Words:
            return np.concatenate(
                [
                    part[label] if label in part else np.full(count, ABSENT)
                    for part, count in zip(parts, counts, strict=True)
                ]
            )

        return PaddedRows({label: numbers(label) for label in labels})

    def __len__(self) -> int:
        return len(next(iter(self.refs.values())))

    def take(self, places: Words) -> PaddedRows:
        """The rows at these places, each at most once."""
        return PaddedRows({label: gather(refs, places) for label, refs in self.refs.items()})

    def reader(self, lane: Lane, specs: Mapping[str, RowsSpec]) -> Callable[[Column], pa.Array]:
        """How an expression reads the columns of these rows: NULL where there is none."""
        refs, present = dict[str, Words](), dict[str, pa.Array]()
        for label, numbers in self.refs.items():
            there: npt.NDArray[np.bool_] = numbers != ABSENT
            if there.all():
                refs[label] = numbers
            elif there.any():  # Any row stands for those that are not there, and is not looked at.
                refs[label], present[label] = np.where(there, numbers, numbers[there.argmax()]), pa.array(there)
        of_rows = lane.reader(specs, Combinations(refs, {}, {}))
        padded: dict[Column, pa.Array] = {}

        def read(column: Column) -> pa.Array:
            if column.alias not in refs:
                return pa.nulls(len(self), column.type)
            if column.alias not in present:
                return of_rows(column)
            if column not in padded:
                values = of_rows(column)
                padded[column] = pc.if_else(present[column.alias], values, pa.scalar(None, values.type))
            return padded[column]

        return read


@dataclass(frozen=True)
class OuterJoinOperator(ResultOperator):
    """The results of the inner join, and rows of the `preserved` sources, as the query's `OuterJoin` says."""

    preserved: tuple[SourceOperator, ...]

    @property
    def node(self) -> OuterJoin:
        """The logical node of the query that it computes."""
        assert isinstance(self.query.on_top, OuterJoin)
        return self.query.on_top

    @override
    @property
    def slack(self) -> int:
        # A match may be over as soon as its newer row is there; a row's fate is told at the end of its window.
        windows = [self.rows[source.spec.label].window for source in self.preserved]
        return max(window.size for window in windows if window is not None)

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        (delta,) = deltas
        state, span, kind = lane.join(self.kept[0]), self.span(lane), self.node.kind_of_join
        old = [run.combinations for run in state.old]
        new = self._new_matches(delta, old, span)
        state.insert(SortedRun(None, new))
        matches = [*old, new]
        if kind == "semi":
            parts = [first_matches(matches, self.preserved[0].spec.label, span)]
        else:
            parts = [self._unmatched(lane, source, matches, span) for source in self.preserved]
        if kind == "outer":
            parts.append((delta.refs, delta.valid_from[EVENT_TIME]))
        rows = PaddedRows.of([refs for refs, _ in parts])
        return self._answered(lane, rows, np.concatenate([times for _, times in parts]))

    def _new_matches(self, delta: Combinations, old: Sequence[Combinations], span: tuple[int, int]) -> Combinations:
        """Return one result of the step for each preserved row without an older one; in a semi join the earliest."""
        chosen, is_semi = np.zeros(len(delta), np.bool_), self.node.kind_of_join == "semi"
        for source in self.preserved:
            refs = delta.refs[source.spec.label]
            at = earliest(refs, delta.valid_from[EVENT_TIME]) if is_semi else one_of_each(refs)
            for found in old:
                known = found.refs[source.spec.label]
                if is_semi:  # One out of order may be the first match all the same, until that has been told.
                    known = known[found.valid_from[EVENT_TIME] < span[0]]
                at = at[~np.isin(refs[at], known)]
            chosen[at] = True
        return delta if chosen.all() else delta.take(chosen)

    def _unmatched(
        self, lane: Lane, source: SourceOperator, matches: Sequence[Combinations], span: tuple[int, int]
    ) -> tuple[Mapping[str, Words], Words]:
        """Return the rows of a source whose windows the watermark passes in this step, and that join nothing."""
        label = source.spec.label
        found = [self._ended(lane, label, rows, span) for rows in (*source.runs(lane), source.delta(lane))]
        refs, ends = (np.concatenate(columns) for columns in zip(*found, strict=True))
        for match in matches if len(refs) else ():
            alone = indices(~np.isin(refs, match.refs[label]))
            refs, ends = refs[alone], ends[alone]
        return {label: refs}, ends

    def _ended(self, lane: Lane, label: str, rows: Combinations, span: tuple[int, int]) -> tuple[Words, Words]:
        rows, ends = self._until(lane, label, rows, span)
        at = indices((ends >= span[0]) & (ends < span[1]))
        return rows.refs[label][at], ends[at]

    def _until(self, lane: Lane, label: str, rows: Combinations, span: tuple[int, int]) -> tuple[Combinations, Words]:
        until = [(column, size) for column, size in self.node.until if column.alias == label]
        if not until or not len(rows):
            return rows, rows.valid_to[EVENT_TIME]
        rows = rows.take(indices((rows.valid_to[EVENT_TIME] >= span[0]) & (rows.valid_from[EVENT_TIME] < span[1])))
        read = lane.reader(self.rows, Combinations({label: rows.refs[label]}, {}, {}))
        known = [np.asarray(read(c).cast(pa.int64()).fill_null(FOREVER)) + size for c, size in until]
        # A row that comes late, having waited for a partner itself, can be told at once.
        least = np.maximum(np.minimum.reduce(known), rows.valid_from[EVENT_TIME])
        return rows, np.minimum(least, rows.valid_to[EVENT_TIME])

    def _answered(self, lane: Lane, rows: PaddedRows, times: Words) -> Answer:
        condition = self.node.condition
        if condition is not None and len(times):
            read = self._reader(lane, rows, times)
            at = indices(holds(condition, read, len(times)) | fails(condition, read, len(times)))
            rows, times = rows.take(at), times[at]
        order = stable_sort(times)[0]
        rows, times = rows.take(order), times[order]
        read = self._reader(lane, rows, times)
        kept, dead = self.judged(read, times)
        if kept is not None:
            remain = indices(kept)
            rows, times = rows.take(remain), times[remain]
            read = self._reader(lane, rows, times)
        return replace(self.answer(self.values(read, len(times)), times), dead=dead)

    def _reader(self, lane: Lane, rows: PaddedRows, times: Words) -> Callable[[Column], pa.Array]:
        return with_time(rows.reader(lane, self.rows), times)


def first_matches(
    matches: Sequence[Combinations], label: str, span: tuple[int, int]
) -> tuple[Mapping[str, Words], Words]:
    """The rows of a source whose first match is within the half-open span, and the time of that.

    >>> def match(time, row):
    ...     return Combinations({"A": np.array([row])}, {EVENT_TIME: np.array([time])}, {})
    >>> rows, times = first_matches([match(5, 7), match(3, 7), match(4, 8), match(2, 9), match(4, 9)], "A", (3, 10))
    >>> rows["A"].tolist(), times.tolist()
    ([7, 8], [3, 4])
    """
    refs = np.concatenate([found.refs[label] for found in matches])
    times = np.concatenate([found.valid_from[EVENT_TIME] for found in matches])
    within = indices((times >= span[0]) & (times < span[1]))
    known = refs[times < span[0]]
    refs, times = refs[within], times[within]
    first = earliest(refs, times)
    first = first[~np.isin(refs[first], known)]
    return {label: refs[first]}, times[first]


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
    at = indices(times == least[rows])
    return at[one_of_each(refs[at])]


def one_of_each(refs: Words) -> Words:
    """For each row, in order of their numbers, one index at which it stands.

    >>> one_of_each(np.array([7, 8, 7])).tolist()
    [2, 1]
    """
    if not len(refs):
        return refs
    least = refs.min()
    place = np.full(refs.max() - least + 1, -1)
    place[refs - least] = np.arange(len(refs))
    return place[place >= 0]


def state_of_matches(joined: StateSpec, outer: OuterJoin) -> StateSpec:
    """The state of some results of a join, apart from that of all of them, which others may use."""
    scope = f"{joined.signature.scope} matching {outer.kind_of_join} {' '.join(outer.preserved)}"
    return replace(joined, signature=replace(joined.signature, scope=scope))


class OuterJoinCompiler(ResultCompiler):
    """Compiles an outer, semi or anti join."""

    name = "outer_join"
    node = OuterJoin

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        outer = asked.query.on_top
        assert isinstance(outer, OuterJoin)
        sources = tuple(compile_source(asked.binding, label) for label in outer.preserved)
        kept = (state_of_matches(asked.joined(), outer),)
        return OuterJoinOperator(asked.query, asked.binding.rows(), kept, sources)
