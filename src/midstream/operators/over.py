"""The result operator of calls OVER (...): an answer for each row, over the rows near to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from typing_extensions import override

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import TIME_COLUMN, Column
from midstream.expr.kernels.cast import cast
from midstream.expr.kernels.datum import Mask
from midstream.expr.types import family
from midstream.logical.query import FIRSTS, GROUPED, LISTS, Aggregate, AggregateCall, Frame
from midstream.model.window import EVENT_TIME
from midstream.operators.aggregate import (
    ARGUMENT,
    BY,
    CONDITION,
    HALF,
    LOWER,
    AggregateOperator,
    aggregate,
    evaluated,
    mean_of,
    of_halves,
    parts_of,
    without_sum,
)
from midstream.operators.collected import rank
from midstream.operators.group_numbers import group_numbers
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.sorted_run import SortedRun

_PIECE = 1 << 20
"""About how many pairs of a row and a row of its frame are looked at at once."""


@dataclass(frozen=True)
class OverOperator(AggregateOperator):
    """Answers each row once the watermark has passed all rows that its frames may have.

    That time is the row's own, or that of the last row of a frame that looks ahead, or the end of such a frame where
    it has fewer rows. It depends on rows of before it only, so it is known in the step whose watermark passes it, and
    nothing says which rows are answered already.
    """

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        state = lane.join(self.kept[0])
        state.insert(SortedRun(None, deltas[0]))
        _, dead = self.sorted_out(lane, deltas[0])
        begin, end = self.span(lane)
        nothing = Answer(self.schema().empty_table(), np.zeros(0, np.int64), dead)
        if end <= begin:
            return nothing
        runs = [*(run.combinations for run in state.old), deltas[0]]
        times = [run.valid_from[EVENT_TIME] for run in runs]  # Of the whole state only these are looked at.
        oldest = self._begin(np.concatenate(times), begin, end)
        if oldest is None:
            return nothing
        near = [run.take(np.flatnonzero((own >= oldest) & (own < end))) for run, own in zip(runs, times, strict=True)]
        # Not only the step's: a state may have been computed anew, with what was rejected once.
        rows, _ = self.sorted_out(lane, concatenate(near))
        found = self._answered(lane, rows, begin, end)
        return replace(found, dead=together(dead, found.dead))

    @property
    def _frames(self) -> list[Frame]:
        return [call.frame for call in self.calls if call.frame is not None]

    def _begin(self, times: Words, begin: int, end: int) -> int | None:
        """Return the first time that the frames of the rows may have which may be answered between two watermarks."""
        ahead = max(0, *(frame.after for frame in self._frames))
        back = max(0, *(frame.before for frame in self._frames))
        asked = times[(times < end) & (times >= begin - ahead)]
        return int(asked.min()) - back if len(asked) else None

    def _answered(self, lane: Lane, rows: Combinations, begin: int, end: int) -> Answer:
        times = rows.valid_from[EVENT_TIME]
        read = with_time(lane.reader(self.rows, rows), times)
        groups = [evaluate(group, read, len(rows)) for group in self.node.groups]
        numbers, _ = group_numbers(pa.array(np.zeros(len(rows), np.int64)), groups)
        keys = [rank(evaluate(key, read, len(rows)), descending=down) for key, down in self.node.over or ()]
        ties = [rank(evaluate(one, read, len(rows))) for one in self._told()]
        order = np.lexsort((*reversed(ties), *reversed(keys), times, numbers))
        rows, near = rows.take(order), _Near(times[order], numbers[order])
        due = near.due(self._frames)
        chosen = np.flatnonzero((due >= begin) & (due < end))
        chosen = chosen[np.argsort(due[chosen], kind="stable")]
        read = with_time(lane.reader(self.rows, rows), near.times)
        values, failed = self._called(evaluated(self.node, read, len(rows)), near, chosen)
        place = pa.array(chosen)

        def shown(column: Column) -> pa.Array:
            value = values[column.name] if column.alias == GROUPED else read(column).take(place)
            return value if value.type == column.type else cast(column.type, value)

        return self._over_groups(with_time(shown, due[chosen]), due[chosen], failed)

    def _told(self) -> list[Column]:
        """What decides which of two rows of one time, which ORDER BY does not tell apart, comes first: columns that are
        selected, in this order, then the others that are read.
        """
        read = [part for output in self.query.outputs for part in output.expression.walk()]
        read += [part for one in self.node.read() for part in one.walk()]
        columns = dict.fromkeys(one for one in read if isinstance(one, Column) and one.alias not in ("", GROUPED))
        return [one for one in columns if family(one.type) not in ("other", "null")]

    def _called(
        self, columns: Mapping[str, pa.Array], near: _Near, chosen: Words
    ) -> tuple[dict[str, pa.Array], dict[str, Mask]]:
        values, failed = dict[str, pa.Array](), dict[str, Mask]()
        for number, call in enumerate(self.calls):
            assert call.frame is not None
            first, behind = (ends[chosen] for ends in near.bounds(call.frame))
            names = (f"{part}{number}" for part in (ARGUMENT, BY, CONDITION))
            own = {name: columns[name] for name in names if name in columns}
            if (call.function in FIRSTS and _by_time(call)) or (call.function in LISTS and call.by is None):
                own[f"{BY}{number}"] = pa.array(np.arange(len(near.times)))
            if (found := _running(call, own, number, first, behind)) is not None:
                values[f"a{number}"] = found
                continue
            pieces, too_great = list[pa.Array](), list[Mask]()
            for at, owner, count in _pairs(first, behind):
                taken = {name: column.take(pa.array(at)) for name, column in own.items()}
                argument, by, owners = parts_of(taken, number, owner)
                pieces.append(aggregate(call, argument, owners, count, by))
                if call.function == "sum" and argument is not None:
                    too_great.append(without_sum(pieces[-1], argument, owners))
            values[f"a{number}"] = pa.chunked_array(pieces).combine_chunks()
            if too_great:
                failed[f"a{number}"] = np.concatenate(too_great)
        return values, failed


def _running(
    call: AggregateCall, columns: Mapping[str, pa.Array], number: int, first: Words, behind: Words
) -> pa.Array | None:
    """Compute COUNT, sums and means of integers, MIN and MAX without a look at each row of each frame, or nothing."""
    argument, condition = columns.get(f"{ARGUMENT}{number}"), columns.get(f"{CONDITION}{number}")
    given = argument if argument is not None else condition
    if call.distinct or call.function not in _RUNNING or given is None:
        return pa.array(behind - first) if call.function == "count" and not call.distinct else None
    counted = np.ones(len(given), np.bool_)
    for mask in (argument and argument.is_valid(), condition and condition.fill_null(False)):
        counted &= True if mask is None else mask.to_numpy(zero_copy_only=False)

    def between(values: Words) -> Words:
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
        found: Words = total[behind] - total[first]
        return found

    counts = between(counted.astype(np.int64))
    if call.function == "count":
        return pa.array(counts)
    assert argument is not None
    if call.function in ("min", "max"):
        places = np.flatnonzero(counted)
        return _extremes(call, argument.take(pa.array(places)), *(np.searchsorted(places, e) for e in (first, behind)))
    if not pt.is_integer(argument.type):
        return None
    numbers = np.where(counted, argument.fill_null(0).to_numpy(zero_copy_only=False), 0)
    if argument.type.bit_width < 64:
        total = pa.array(between(numbers), mask=counts == 0)
    else:
        total = of_halves(between(numbers >> HALF), between(numbers & LOWER), counts == 0)
    return total if call.function == "sum" else mean_of(total, counts)


_RUNNING = frozenset({"count", "sum", "avg", "min", "max"})


def _extremes(call: AggregateCall, values: pa.Array, first: Words, behind: Words) -> pa.Array:
    """Return the extreme value of each range, from two overlapping ranges whose length is a power of two."""
    sizes = behind - first
    best = rank(values, descending=call.function == "max") * len(values) + np.arange(len(values))
    found, length = np.zeros(len(first), np.int64), 1
    while length <= sizes.max(initial=0):
        now = np.flatnonzero((sizes >= length) & (sizes < 2 * length))
        found[now] = np.minimum(best[first[now]], best[behind[now] - length])
        best = np.minimum(best[:-length], best[length:])
        length *= 2
    return values.take(pa.array(found % max(len(values), 1), mask=sizes == 0))


def _by_time(call: AggregateCall) -> bool:
    return call.by is None or (isinstance(call.by, Column) and call.by.alias == "" and call.by.name == TIME_COLUMN)


class _Near:
    """Rows in order of partition and time, and where the frame of each lies."""

    def __init__(self, times: Words, numbers: Words) -> None:
        self.times, self.numbers = times, numbers
        self.moments = np.unique(times)
        self.codes = numbers * (len(self.moments) + 1) + np.searchsorted(self.moments, times)

    def bounds(self, frame: Frame) -> tuple[Words, Words]:
        """The first row of each row's frame, and the one behind its last."""
        base = self.numbers * (len(self.moments) + 1)
        low = np.searchsorted(self.moments, self.times - frame.before)
        high = np.searchsorted(self.moments, self.times + frame.after, side="right")
        first, behind = np.searchsorted(self.codes, base + low), np.searchsorted(self.codes, base + high)
        if frame.rows is not None:
            places = np.arange(len(self.times))
            first = np.maximum(first, places + frame.rows[0])
            behind = np.minimum(behind, places + (frame.rows[1] + 1))
        return first, np.maximum(first, behind)

    def due(self, frames: Sequence[Frame]) -> Words:
        """When all rows of each row's frames are known."""
        found = self.times
        for frame in dict.fromkeys(frames):
            end = self.times + max(frame.after, 0)
            if frame.rows is not None and 0 < frame.rows[1] < len(self.times):
                last = np.arange(len(self.times)) + frame.rows[1]
                there = np.minimum(last, len(self.times) - 1)
                known = (last == there) & (self.numbers[there] == self.numbers)
                end = np.where(known, np.minimum(self.times[there], end), end)
            found = np.maximum(found, end)
        return found


def _pairs(first: Words, behind: Words) -> Iterator[tuple[Words, Words, int]]:
    """The rows of the frames, the places of the rows whose they are, counted from 0 in each piece, and how many these
    are: in pieces of not too many pairs.
    """
    counts = behind - first
    pieces = np.cumsum(counts) // _PIECE
    ends = [*np.flatnonzero(np.diff(pieces)) + 1, len(counts)]
    begin = 0
    for end in ends:
        some = counts[begin:end]
        owner = np.repeat(np.arange(end - begin), some)
        offset = np.arange(int(some.sum())) - np.repeat(np.cumsum(some) - some, some)
        yield np.repeat(first[begin:end], some) + offset, owner, end - begin
        begin = end


class OverCompiler(ResultCompiler):
    """Compiles calls over the rows near to each row."""

    name = "over"
    node = Aggregate
    forms = ("over",)

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return OverOperator(asked.query, asked.binding.rows(), (asked.joined(),))
