"""The result operator of a query for the first n rows of each group, at instants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Column
from midstream.expr.kernels.datum import Mask
from midstream.expr.types import family
from midstream.logical.query import Aggregate
from midstream.operators.aggregate import AggregateOperator
from midstream.operators.collected import rank
from midstream.operators.group_numbers import group_numbers
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.sql.top_n_clause import RANK
from midstream.state.combinations import Combinations, Words


@dataclass(frozen=True)
class TopNOperator(AggregateOperator):
    """At each instant the first n of the results that are alive, in each group.

    Results that are equal in what they are ordered by stand in the order of what is selected, and then of what is asked
    of them: so no plan, and no number of lanes, decides which come first.
    """

    @override
    def _grouped(self, lane: Lane, alive: Combinations, at: Words, instants: Words) -> Answer:
        aggregate = self.node
        assert aggregate is not None and aggregate.top is not None
        read, take = lane.reader(self.rows, alive), pa.array(at)
        groups = [evaluate(group, read, len(alive)).take(take) for group in aggregate.groups]
        numbers, _ = group_numbers(pa.array(instants), groups)
        keys = [rank(evaluate(e, read, len(alive)).take(take), descending=down) for e, down in aggregate.top.order]
        shown = with_time(lambda column: read(column).take(take), instants)
        told = [o.expression for o in self.query.outputs]
        told += [] if aggregate.having is None else [e for e in aggregate.having.walk() if isinstance(e, Column)]
        ties = [rank(evaluate(expression, shown, len(at))) for expression in dict.fromkeys(told) if _orders(expression)]
        order = np.lexsort((*reversed(ties), *reversed(keys), numbers))
        position = positions(aggregate.top.function, numbers[order], [key[order] for key in keys])
        first = position <= aggregate.top.count
        chosen, position = order[first], position[first]
        where, when = pa.array(at[chosen]), instants[chosen]

        def of_chosen(column: Column) -> pa.Array:
            return pa.array(position) if column == RANK else read(column).take(where)

        shown = with_time(of_chosen, when)
        if aggregate.having is not None:
            kept = holds(aggregate.having, shown, len(chosen))
            chosen, position, when = chosen[kept], position[kept], when[kept]
            where = pa.array(at[chosen])
            shown = with_time(of_chosen, when)
        return self.answer(self.values(shown, len(chosen)), when)


def positions(function: str, numbers: Words, keys: Sequence[Words]) -> Words:
    """The rank of each row in its group, from 1; rows in order of the numbers of their groups, and of the keys.

    >>> numbers, keys = np.array([0, 0, 0, 0, 1]), [np.array([5, 5, 6, 7, 7])]
    >>> [positions(function, numbers, keys).tolist() for function in ("row_number", "rank", "dense_rank")]
    [[1, 2, 3, 4, 1], [1, 1, 3, 4, 1], [1, 1, 2, 3, 1]]
    """
    places = np.arange(len(numbers))
    begins = _changes(numbers)
    start = np.maximum.accumulate(np.where(begins, places, 0))
    if function == "row_number":
        return places - start + 1
    differs = np.logical_or.reduce([begins, *map(_changes, keys)])
    seen: Words = np.maximum.accumulate(np.where(differs, places, 0)) if function == "rank" else np.cumsum(differs)
    return seen - seen[start] + 1


def _changes(values: Words) -> Mask:
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def _orders(expression: object) -> bool:
    """Return whether a value of the results decides which of equal results comes first."""
    kind = family(getattr(expression, "type", pa.null()))
    reads_rank = RANK in getattr(expression, "columns", lambda: ())()
    return kind not in ("other", "null") and not reads_rank


class TopNCompiler(ResultCompiler):
    """Compiles the first rows of each group."""

    name = "top_n"
    node = Aggregate
    forms = ("top_n",)

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return TopNOperator(asked.query, asked.binding.rows(), (asked.joined(),))
