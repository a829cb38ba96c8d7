"""The result operator of an aggregate query: CQL's relation at each instant, grouped and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from typing_extensions import override

from midstream.language.evaluate import evaluate
from midstream.language.expression import Column
from midstream.language.query import AggregateCall
from midstream.model.window import EVENT_TIME
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.sorted_run import SortedRun

HALF = 32

GROUPED = "#"
"""The pseudo-source of groups and aggregate values."""


@dataclass(frozen=True)
class AggregateOperator(ResultOperator):
    """Evaluates `offset` after the multiples of `every` that the watermark passes, over the results alive then.

    The results with their lifetimes are its state; each (result, instant) pair is made by arithmetic, without a loop
    over instants, so that a gap of years costs nothing.
    """

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        state = lane.join(self.kept[0])
        state.insert(SortedRun(None, deltas[0]))
        if not self._passes(lane):
            return Answer(self.schema().empty_table(), np.zeros(0, np.int64))
        alive = concatenate([*(run.combinations for run in state.old), deltas[0]])
        at, instants = self._occurrences(lane, alive)
        if not len(at):
            return Answer(self.schema().empty_table(), instants)
        return self._grouped(lane, alive, at, instants)

    def _passes(self, lane: Lane) -> bool:
        """Whether the watermark passes an instant in this step."""
        assert self.query.aggregate is not None
        begin, end = self.span(lane)
        every, offset = self.query.aggregate.every, self.query.aggregate.offset
        return (end - 1 - offset) // every * every + offset >= begin

    def _occurrences(self, lane: Lane, alive: Combinations) -> tuple[Words, Words]:
        """Every (index of a result, instant at which it is alive)."""
        assert self.query.aggregate is not None
        every, shift = self.query.aggregate.every, self.query.aggregate.offset
        begin, end = self.span(lane)
        first = -(-(np.maximum(alive.valid_from[EVENT_TIME], begin) - shift) // every)
        last = (np.minimum(self.ends(lane, alive), end - 1) - shift) // every if end > begin else first - 1
        counts = np.maximum(last - first + 1, 0)
        at = np.repeat(np.arange(len(alive)), counts)
        offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, (np.repeat(first, counts) + offset) * every + shift

    def _grouped(self, lane: Lane, alive: Combinations, at: Words, instants: Words) -> Answer:
        assert self.query.aggregate is not None
        read = lane.reader(self.rows, alive)
        take = pa.array(at)
        groups = [evaluate(g, read, len(alive)).take(take) for g in self.query.aggregate.groups]
        numbers, first = _group_numbers(pa.array(instants), groups)
        values: dict[str, pa.Array] = {f"g{i}": g.take(first) for i, g in enumerate(groups)}
        for i, call in enumerate(self.query.aggregate.calls):
            argument = None if call.argument is None else evaluate(call.argument, read, len(alive)).take(take)
            owner = numbers
            if call.condition is not None:
                chosen = evaluate(call.condition, read, len(alive)).take(take).fill_null(False)
                argument, owner = argument and argument.filter(chosen), numbers[_mask(chosen)]
            values[f"a{i}"] = aggregate(call, argument, owner, len(first))

        def grouped(column: Column) -> pa.Array:
            value = values[column.name]
            return value if value.type == column.type else pc.cast(value, column.type)

        when = instants[first.to_numpy()]
        read_groups = with_time(grouped, when)
        found = self.answer(self.values(read_groups, len(first)), when)
        if self.query.aggregate.having is None:
            return found
        satisfied = evaluate(self.query.aggregate.having, read_groups, len(first)).fill_null(False)
        return Answer(found.table.filter(satisfied), when[_mask(satisfied)])


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def aggregate(call: AggregateCall, argument: pa.Array | None, numbers: Words, groups: int) -> pa.Array:
    """One value per group; NULL arguments do not count."""
    if argument is None:
        return pa.array(np.bincount(numbers, minlength=groups))
    valid = argument.is_valid()
    kept, owner = argument.filter(valid), numbers[valid.to_numpy(zero_copy_only=False)]
    if call.distinct:
        kept, owner = _distinct(kept, owner)
    name = call.function.lower()
    if name == "count":
        return pa.array(np.bincount(owner, minlength=groups))
    if name == "median" or (name in ("min", "max") and pt.is_floating(kept.type)):
        return _by_rank(name, kept, owner, groups)
    if name in _SPREADS:
        return _spread_of(name, as_double(kept), owner, groups)
    if name == "avg":
        return _grouped("mean", as_double(kept), owner, groups)
    if name == "sum" and not pt.is_floating(kept.type):
        return exact_sum(kept, owner, groups)
    if pt.is_duration(kept.type):
        return _grouped(name, kept.view(pa.int64()), owner, groups).view(kept.type)
    return _grouped(name, kept, owner, groups)


def _grouped(function: str, values: pa.Array, owner: Words, groups: int) -> pa.Array:
    table = pa.table({"owner": owner, "value": values})
    summed = table.group_by("owner", use_threads=False).aggregate([("value", function)])
    return _spread(summed["owner"].to_numpy(), summed[f"value_{function}"].combine_chunks(), groups)


_SPREADS = {
    "stddev_samp": ("stddev", 1),
    "stddev_pop": ("stddev", 0),
    "var_samp": ("variance", 1),
    "var_pop": ("variance", 0),
}
"""By name what is computed, and by how much less than the number of values the squares' sum is divided."""


def _spread_of(name: str, values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """Standard deviations and variances: NULL for a group of fewer values than are needed."""
    function, less = _SPREADS[name]
    table = pa.table({"owner": owner, "value": values})
    options = pc.VarianceOptions(ddof=less)
    found = table.group_by("owner", use_threads=False).aggregate([("value", function, options)])
    return _spread(found["owner"].to_numpy(), found[f"value_{function}"].combine_chunks(), groups)


def _spread(owner: Words, values: pa.Array, groups: int) -> pa.Array:
    """Values at their groups' places; NULL for a group that has none."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    place = np.full(groups, -1)
    place[owner] = np.arange(len(owner))
    return values.take(pa.array(place, mask=place < 0))


def _by_rank(name: str, values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """MIN, MAX and MEDIAN by position within the sorted group, NaN being the greatest number."""
    numbers = as_double(values).to_numpy(zero_copy_only=False)
    order = np.lexsort((numbers, owner))
    numbers, owner = numbers[order], owner[order]
    counts = np.bincount(owner, minlength=groups)
    present = counts > 0
    start = (np.cumsum(counts) - counts)[present]
    size = counts[present]
    if name == "median":
        chosen = (numbers[start + (size - 1) // 2] + numbers[start + size // 2]) / 2
    else:
        chosen = numbers[start if name == "min" else start + size - 1]
    kind = pa.float64() if name == "median" else values.type
    return _spread(np.flatnonzero(present), pa.array(chosen).cast(kind), groups)


def _distinct(values: pa.Array, owner: Words) -> tuple[pa.Array, Words]:
    """Each value once per owner."""
    codes = _codes(values)
    _, first = np.unique(owner * (int(codes.max(initial=0)) + 1) + codes, return_index=True)
    return values.take(pa.array(first)), owner[first]


def _codes(column: pa.Array) -> Words:
    """Small numbers that are equal exactly where the values are, NULL being equal to NULL."""
    plain = _canonical(column) if pt.is_floating(column.type) else column
    return np.asarray(plain.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False), np.int64)


def _group_numbers(instants: pa.Array, groups: Sequence[pa.Array]) -> tuple[Words, pa.Array]:
    """For each row the number of its group, and for each group its first row; groups in order of instant."""
    numbers = np.zeros(len(instants), np.int64)
    for column in (instants, *groups):
        codes = _codes(column)
        joined = numbers * (int(codes.max()) + 1) + codes
        numbers = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    first = np.unique(numbers, return_index=True)[1]
    order = np.lexsort((first, instants.to_numpy()[first]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[numbers], pa.array(first[order])


def _canonical(column: pa.Array) -> pa.Array:
    """Floats with one zero and one NaN, so that SQL-equal values fall into one group."""
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, mask=~column.is_valid().to_numpy(zero_copy_only=False))


def as_double(values: pa.Array) -> pa.Array:
    """Numbers as doubles, to the nearest where a number has more digits."""
    return values if pt.is_float64(values.type) else pc.cast(values, pa.float64(), safe=False)


def exact_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """The sum of integers as int64 or of decimals as decimal(38, s) per group; NULL for a group without values.

    >>> exact_sum(pa.array([2**62, 2**62, 5]), np.array([0, 0, 2]), 3).to_pylist()
    [None, None, 5]
    """
    if pt.is_decimal(values.type):
        return _decimal_sum(values, owner, groups)
    return _integer_sum(values, owner, groups)


def _integer_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """Upper and lower halves are summed apart; neither can overflow below two milliard rows."""
    unsigned = pt.is_unsigned_integer(values.type)
    numbers = values.cast(pa.uint64() if unsigned else pa.int64()).to_numpy(zero_copy_only=False)
    upper, lower = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(upper, owner, (numbers >> HALF).astype(np.int64))
    np.add.at(lower, owner, (numbers & 0xFFFFFFFF).astype(np.int64))
    upper += lower >> HALF
    fits = (upper >= -(1 << (HALF - 1))) & (upper < 1 << (HALF - 1))
    total = (np.where(fits, upper, 0) << HALF) + (lower & 0xFFFFFFFF)
    empty = np.bincount(owner, minlength=groups) == 0
    return pa.array(total, mask=empty | ~fits)


def _decimal_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    scale = values.type.scale
    wide = pa.table({"owner": owner, "value": values.cast(pa.decimal256(76, scale))})
    summed = wide.group_by("owner", use_threads=False).aggregate([("value", "sum")])
    found: list[object] = [None] * groups
    for group, total in zip(summed["owner"].to_pylist(), summed["value_sum"].to_pylist(), strict=True):
        found[group] = total if len(total.as_tuple().digits) <= 38 else None
    return pa.array(found, pa.decimal128(38, scale))
