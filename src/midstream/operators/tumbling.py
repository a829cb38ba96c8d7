"""The result operator of a query that groups a stream by tumbling windows and whose calls can be made in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
import pyarrow.types as pt
from typing_extensions import override

from midstream.expr.types import family
from midstream.logical.query import Aggregate, AggregateCall, Query
from midstream.model.window import EVENT_TIME, Window
from midstream.operators.aggregate import ARGUMENT, added, aggregate, exact_sum, parts_of, wide_sum
from midstream.operators.group_numbers import group_numbers
from midstream.operators.open_groups import OpenGroupsOperator
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import ResultOperator
from midstream.state.combinations import Combinations, Words
from midstream.state.rows import united

_END = "_end"

Sum = Callable[[AggregateCall, pa.Array | None, Words, int], pa.Array]


@dataclass(frozen=True)
class TumblingOperator(OpenGroupsOperator):
    """Keeps of each group of a window that goes on what its calls are so far, and no rows.

    Each step sums up its own rows by group and puts that to what is known. What is kept of a call is the argument of
    the one that makes the answer of it.
    """

    content: ClassVar[str] = "windows"

    @override
    @cached_property
    def calls(self) -> tuple[AggregateCall, ...]:
        return tuple(
            replace(call, function="sum" if call.function == "count" else call.function, condition=None)
            for call in self.node.calls
        )

    @override
    def going_on(self, lane: Lane, rows: Combinations, known: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Words]:
        whole = known
        if len(rows):
            whole = self._arrived(lane, rows)
            if known is not None:
                both = united([known, whole], known.schema.names)
                whole = self._by_group(dict(zip(both.schema.names, both.columns, strict=True)), _merged)
        assert whole is not None
        return whole, whole.column(_END).to_numpy()

    def _arrived(self, lane: Lane, rows: Combinations) -> pa.RecordBatch:
        every, offset = self.node.every, self.node.offset
        ends = -((offset - rows.valid_from[EVENT_TIME]) // every) * every + offset
        return self._by_group({**self.evaluated(lane, rows), _END: pa.array(ends)}, _begun)

    def _by_group(self, columns: Mapping[str, pa.Array], sums: Sum) -> pa.RecordBatch:
        """Return a row for each window and group, in order of window, then of the first row."""
        groups = [f"g{number}" for number in range(len(self.node.groups))]
        numbers, first = group_numbers(columns[_END], [columns[group] for group in groups])
        found = {key: columns[key].take(first) for key in (_END, *groups)}
        for number, call in enumerate(self.node.calls):
            argument, _, owner = parts_of(columns, number, numbers)
            found[f"{ARGUMENT}{number}"] = sums(call, argument, owner, len(first))
        return pa.RecordBatch.from_pydict(found)


def has_partial_sums(query: Query) -> bool:
    """Whether a query groups one stream by a tumbling window, and all that it computes can be put together of parts,
    to the last bit.
    """
    node = query.on_top
    if not isinstance(node, Aggregate) or node.top is not None:
        return False
    if node.session is not None or node.calendar is not None:
        return False
    if len(query.sources) > 1 or node.offset != -1:
        return False
    tumbles = query.sources[0].window == Window("range", node.every - 1)
    return tumbles and all(map(_is_exact, node.calls))


def _is_exact(call: AggregateCall) -> bool:
    if call.distinct:
        return False
    if call.function == "sum":
        assert call.argument is not None
        return family(call.argument.type) in ("integer", "decimal")
    return call.function in ("count", "min", "max", "bool_and", "bool_or")


def _begun(call: AggregateCall, argument: pa.Array | None, owner: Words, groups: int) -> pa.Array:
    """What a call is of some rows; a sum with as many digits as the others may add to it."""
    if call.function != "sum" or argument is None:
        return aggregate(call, argument, owner, groups)
    if argument.null_count:
        argument, owner = argument.drop_null(), owner[argument.is_valid().to_numpy(zero_copy_only=False)]
    if pt.is_decimal(argument.type):
        return wide_sum(argument, owner, groups)
    total = exact_sum(argument, owner, groups)
    return total.cast(pa.decimal256(76, 0)) if pt.is_decimal(total.type) else total


def _merged(call: AggregateCall, argument: pa.Array | None, owner: Words, groups: int) -> pa.Array:
    if call.function in ("sum", "count"):
        return added(argument, owner, groups)
    return aggregate(call, argument, owner, groups)


class TumblingCompiler(ResultCompiler):
    """Compiles an aggregate whose groups are put together of parts, so that no row is kept."""

    name = "tumbling"
    node = Aggregate

    @override
    def takes(self, asked: Asked) -> bool:
        return asked.binding.sums_up

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return TumblingOperator(asked.query, asked.binding.rows(), (), asked.name)
