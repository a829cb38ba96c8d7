"""The result operator of an aggregate query: CQL's relation at each instant, grouped and summed up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray
from typing_extensions import override

from midstream.expr.evaluate import evaluate, fails, holds
from midstream.expr.expression import Column, Expression
from midstream.expr.kernels.cast import cast
from midstream.expr.kernels.datum import Mask
from midstream.expr.kernels.exact import fitted
from midstream.expr.types import WIDEST
from midstream.logical.query import BY_ANOTHER, FIRSTS, LISTS, START, Aggregate, AggregateCall
from midstream.model.window import EVENT_TIME
from midstream.operators.collected import collected
from midstream.operators.group_numbers import codes_of, group_numbers
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, time_array, with_time
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.sorted_run import SortedRun

HALF = 32
LOWER = 0xFFFFFFFF
_NARROW = 28
"""Decimals of so many digits at most have sums of 38, below ten milliard rows, which Arrow forms as fast as any."""

ARGUMENT, BY, CONDITION = "argument", "by", "condition"


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
        _, dead = self.sorted_out(lane, deltas[0])
        if not self._passes(lane):
            return Answer(self.schema().empty_table(), np.zeros(0, np.int64), dead)
        # Not only the step's: a state may have been computed anew, with what was rejected once.
        alive, _ = self.sorted_out(lane, concatenate([*(run.combinations for run in state.old), deltas[0]]))
        at, instants = self._occurrences(lane, alive)
        if not len(at):
            return Answer(self.schema().empty_table(), instants, dead)
        found = self._grouped(lane, alive, at, instants)
        return replace(found, dead=together(dead, found.dead))

    @property
    def node(self) -> Aggregate:
        """The logical node of the query that it computes."""
        assert isinstance(self.query.on_top, Aggregate)
        return self.query.on_top

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """What is made of the parts of each call that were `evaluated`."""
        return self.node.calls

    def _passes(self, lane: Lane) -> bool:
        begin, end = self.span(lane)
        every, offset = self.node.every, self.node.offset
        return (end - 1 - offset) // every * every + offset >= begin

    def _occurrences(self, lane: Lane, alive: Combinations) -> tuple[Words, Words]:
        every, shift = self.node.every, self.node.offset
        begin, end = self.span(lane)
        first = -(-(np.maximum(alive.valid_from[EVENT_TIME], begin) - shift) // every)
        ends = self.ends(lane, alive)
        if self.node.within is not None:
            size, moved = self.node.within
            ends = np.minimum(ends, _begun(alive.valid_from[EVENT_TIME], size, moved) + size - 1)
        last = (np.minimum(ends, end - 1) - shift) // every if end > begin else first - 1
        counts = np.maximum(last - first + 1, 0)
        at = np.repeat(np.arange(len(alive)), counts)
        offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, (np.repeat(first, counts) + offset) * every + shift

    def _grouped(self, lane: Lane, alive: Combinations, at: Words, instants: Words) -> Answer:
        read = with_time(lane.reader(self.rows, alive), alive.valid_from[EVENT_TIME])
        columns = evaluated(self.node, read, len(alive))
        take = pa.array(at)
        found = {name: column.take(take) for name, column in columns.items()}
        if self.node.within is not None:
            found[START] = time_array(_begun(instants, *self.node.within), self.query.time)
        return self._summed_up(found, instants)

    def _summed_up(self, columns: Mapping[str, pa.Array], instants: Words) -> Answer:
        groups = [columns[f"g{i}"] for i in range(len(self.node.groups))]
        numbers, first = group_numbers(pa.array(instants), groups)
        values: dict[str, pa.Array] = {f"g{i}": g.take(first) for i, g in enumerate(groups)}
        if START in columns:
            values[START] = columns[START].take(first)
        overflowed: dict[str, Mask] = {}
        for i, call in enumerate(self.calls):
            argument, by, owner = parts_of(columns, i, numbers)
            values[f"a{i}"] = aggregate(call, argument, owner, len(first), by)
            if call.function == "sum" and argument is not None and values[f"a{i}"].null_count:
                overflowed[f"a{i}"] = without_sum(values[f"a{i}"], argument, owner)

        def grouped(column: Column) -> pa.Array:
            value = values[column.name]
            return value if value.type == column.type else cast(column.type, value)

        when = instants[first.to_numpy()]
        return self._over_groups(with_time(grouped, when), when, overflowed)

    def _over_groups(self, read: Callable[[Column], pa.Array], when: Words, overflowed: Mapping[str, Mask]) -> Answer:
        having, count = self.node.having, len(when)
        found = self.answer(self.values(read, count), when)
        chosen = np.ones(count, np.bool_) if having is None else holds(having, read, count).copy()
        dead: pa.Table | None = None
        if self.dead_letters is not None:
            unsure = _failed(having, read, count, overflowed)
            outputs = [(o, _failed(o.expression, read, count, overflowed)) for o in self.query.outputs]
            chosen &= ~unsure
            failed = [("HAVING", unsure), *((o.name, mask & chosen) for o, mask in outputs)]
            shown = dict(zip(found.table.column_names, found.table.columns, strict=True))
            kept, dead = self.dead_letters.of_outputs(shown, when, failed)
            chosen &= True if kept is None else kept
        if chosen.all():
            return replace(found, dead=dead)
        return Answer(found.table.filter(pa.array(chosen)), when[chosen], dead)


def _begun(times: Words, size: int, moved: int) -> Words:
    return (times - moved) // size * size + moved


def evaluated(aggregate: Aggregate, read: Callable[[Column], pa.Array], count: int) -> dict[str, pa.Array]:
    """What is grouped and summed up: columns `g0, g1, ...` of the groups, and of each call its parts and number."""
    parts: dict[str, Expression | None] = {f"g{i}": group for i, group in enumerate(aggregate.groups)}
    for i, call in enumerate(aggregate.calls):
        parts |= {f"{ARGUMENT}{i}": call.argument, f"{BY}{i}": call.by, f"{CONDITION}{i}": call.condition}
    return {name: evaluate(part, read, count) for name, part in parts.items() if part is not None}


def parts_of(
    columns: Mapping[str, pa.Array], call: int, owner: Words
) -> tuple[pa.Array | None, pa.Array | None, Words]:
    """The argument of a call by its number, what it goes by, and the owners of both, where its condition holds."""
    argument, by, chosen = (columns.get(f"{part}{call}") for part in (ARGUMENT, BY, CONDITION))
    if chosen is None:
        return argument, by, owner
    chosen = chosen.fill_null(False)
    return argument and argument.filter(chosen), by and by.filter(chosen), owner[_mask(chosen)]


def _failed(
    expression: Expression | None,
    read: Callable[[Column], pa.Array],
    count: int,
    overflowed: Mapping[str, Mask],
) -> Mask:
    """For which groups an expression cannot be evaluated, or is over a sum that is too great for its type."""
    if expression is None:
        return np.zeros(count, np.bool_)
    found = fails(expression, read, count).copy()
    for column in expression.columns():
        found |= overflowed.get(column.name, False)
    return found


def without_sum(total: pa.Array, argument: pa.Array, owner: Words) -> Mask:
    """Find the groups whose values have no sum."""
    counts = np.bincount(owner[_mask(argument.is_valid())], minlength=len(total))
    return _mask(total.is_null()) & (counts > 0)


def _mask(values: pa.Array) -> Mask:
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def aggregate(
    call: AggregateCall, argument: pa.Array | None, numbers: Words, groups: int, by: pa.Array | None = None
) -> pa.Array:
    """One value per group; NULL arguments do not count, but in ARRAY_AGG, FIRST and LAST."""
    if argument is None:
        return pa.array(np.bincount(numbers, minlength=groups))
    if call.function in LISTS | BY_ANOTHER | FIRSTS:
        return collected(call, argument, by, numbers, groups)
    kept, owner = argument, numbers
    if argument.null_count:
        valid = argument.is_valid()
        kept, owner = argument.filter(valid), numbers[_mask(valid)]
    if call.distinct:
        kept, owner = _distinct(kept, owner)
    name = call.function.lower()
    if name == "count":
        return pa.array(np.bincount(owner, minlength=groups))
    if name == "median":
        return quantile(kept, owner, groups, 0.5, between=True)
    if name in ("min", "max") and pt.is_floating(kept.type):
        return _extreme(name, kept, owner, groups)
    if name in ("quantile_cont", "quantile_disc") and call.share is not None:
        return quantile(kept, owner, groups, call.share, between=name == "quantile_cont")
    if name in ("bool_and", "bool_or"):
        return _grouped("all" if name == "bool_and" else "any", kept, owner, groups)
    if name in _SPREADS:
        return _spread_of(name, as_double(kept), owner, groups)
    if name == "avg":
        return _mean(kept, owner, groups)
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
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    place = np.full(groups, -1)
    place[owner] = np.arange(len(owner))
    return values.take(pa.array(place, mask=place < 0))


def _extreme(name: str, values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """MIN and MAX of floating-point numbers, NaN being the greatest."""
    found = np.full(groups, np.nan if name == "min" else -np.inf)
    # The one passes NaN over where there is a number, the other passes it on.
    with np.errstate(invalid="ignore"):
        (np.fmin if name == "min" else np.maximum).at(found, owner, as_double(values).to_numpy(zero_copy_only=False))
    return pa.array(found, mask=np.bincount(owner, minlength=groups) == 0).cast(values.type)


def _mean(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """Return the mean per group as a DOUBLE; for integers and decimals, the exact sum makes the order irrelevant."""
    if pt.is_floating(values.type):
        return _grouped("mean", as_double(values), owner, groups)
    decimals = pt.is_decimal(values.type)
    total = wide_sum(values, owner, groups) if decimals else exact_sum(values, owner, groups)
    return mean_of(total, np.bincount(owner, minlength=groups))


def mean_of(total: pa.Array, counts: Words) -> pa.Array:
    """Divide exact sums by how many values they have, to the last bit of a DOUBLE; NULL where there is none."""
    # The extended double and the power of ten as a double are what DuckDB divides by, and so its last bit.
    unit = 10.0**total.type.scale if pt.is_decimal(total.type) else 1.0
    found = _extended(total) / (np.maximum(counts, 1).astype(np.longdouble) * unit)
    return pa.array(found.astype(np.float64), mask=counts == 0)


def _extended(numbers: pa.Array) -> NDArray[np.longdouble]:
    """Integers, or decimals without their point, in the widest floating-point type; anything where they are NULL."""
    if not pt.is_decimal(numbers.type):
        return _mask(numbers.fill_null(0)).astype(np.longdouble)
    whole = numbers.cast(pa.decimal256(76, numbers.type.scale))
    # Of the magnitude, for words of unlike signs would cancel each other where the type has no 64 bits.
    words = np.frombuffer(pc.abs(whole).buffers()[1], np.uint64).reshape(-1, 4)
    found = np.zeros(len(whole), np.longdouble)
    for place in range(3, -1, -1):
        found += np.ldexp(words[:, place].astype(np.longdouble), 64 * place)
    return np.where(np.frombuffer(whole.buffers()[1], np.int64)[3::4] < 0, -found, found)


def quantile(values: pa.Array, owner: Words, groups: int, share: float, *, between: bool) -> pa.Array:
    """Per group the value that so great a share of the others are not greater than; NaN is the greatest number.

    With `between`, what lies so far between two values, as a DOUBLE; otherwise one of the values.

    >>> values, owner = pa.array([1, 2, 3, 10]), np.zeros(4, np.int64)
    >>> [quantile(values, owner, 1, 0.25, between=cont).to_pylist() for cont in (True, False)]
    [[1.75], [1]]
    """
    values = as_double(values) if between else values
    order = pc.sort_indices(
        pa.table({"owner": owner, "value": values}), [("owner", "ascending"), ("value", "ascending")]
    )
    ordered, counts = values.take(order), np.bincount(owner, minlength=groups)
    present = counts > 0
    start, size = (np.cumsum(counts) - counts)[present], counts[present]
    if not between:
        at = start + np.maximum(np.ceil(size * share).astype(np.int64) - 1, 0)
        return _spread(np.flatnonzero(present), ordered.take(pa.array(at)), groups)
    place = (size - 1) * share
    numbers, low = ordered.to_numpy(zero_copy_only=False), np.floor(place).astype(np.int64)
    one, other = numbers[start + low], numbers[start + np.ceil(place).astype(np.int64)]
    part = place - low
    # Weights do not overflow where a difference would; the first product is not rounded, as in DuckDB's.
    with np.errstate(invalid="ignore"):
        between_them = (one.astype(np.longdouble) * (1 - part) + other * part).astype(np.float64)
    return _spread(np.flatnonzero(present), pa.array(np.where(one == other, one, between_them)), groups)


def _distinct(values: pa.Array, owner: Words) -> tuple[pa.Array, Words]:
    codes = codes_of(values)
    _, first = np.unique(owner * (int(codes.max(initial=0)) + 1) + codes, return_index=True)
    return values.take(pa.array(first)), owner[first]


def as_double(values: pa.Array) -> pa.Array:
    """Numbers as doubles, to the nearest where a number has more digits."""
    return cast(pa.float64(), values)


def exact_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """The sum per group, NULL for a group without values: of INT and narrower as int64, of 64 bits as decimal(38), of
    decimals as decimal(38, s), NULL where it has more digits.

    >>> exact_sum(pa.array([2**62, 2**62, 5]), np.array([0, 0, 2]), 3).to_pylist()
    [Decimal('9223372036854775808'), None, Decimal('5')]
    """
    if pt.is_decimal(values.type):
        return fitted(pa.decimal128(38, values.type.scale), wide_sum(values, owner, groups))
    if values.type.bit_width < 64:
        return added(values, owner, groups).cast(pa.int64())
    return _wide_integer_sum(values, owner, groups)


def _wide_integer_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """Upper and lower halves are summed apart; neither can overflow below two milliard rows."""
    numbers = values.to_numpy(zero_copy_only=False)
    upper, lower = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(upper, owner, (numbers >> HALF).astype(np.int64))
    np.add.at(lower, owner, (numbers & LOWER).astype(np.int64))
    return of_halves(upper, lower, np.bincount(owner, minlength=groups) == 0)


def of_halves(upper: Words, lower: Words, empty: Mask) -> pa.Array:
    """Put sums of the upper and the lower halves of integers together as decimals, NULL where there was no value."""
    upper = upper + (lower >> HALF)
    low = ((upper & LOWER) << HALF) + (lower & LOWER)
    # A decimal is its 128 bits, the lower word first.
    words = np.column_stack((low, upper >> HALF))
    there = pa.array(~empty).buffers()[1]
    return pa.Array.from_buffers(WIDEST, len(words), [there, pa.py_buffer(words.tobytes())])


def wide_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """The sum of decimals per group, of as many digits as it may have."""
    wide = pa.decimal256(76, values.type.scale)
    if pt.is_decimal128(values.type) and values.type.precision <= _NARROW:
        return added(values, owner, groups).cast(wide)
    return added(values.cast(wide), owner, groups)


def added(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """The sum per group of numbers of a type that holds it, NULL for a group without values."""
    return _grouped("sum", values, owner, groups)


class AggregateCompiler(ResultCompiler):
    """Compiles an aggregate over the rows that are alive at an instant."""

    name = "aggregate"
    node = Aggregate

    @override
    def takes(self, asked: Asked) -> bool:
        return asked.form == "groups" and not asked.binding.sums_up

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return AggregateOperator(asked.query, asked.binding.rows(), (asked.joined(),))
