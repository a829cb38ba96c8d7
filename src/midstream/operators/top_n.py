"""The result operator of a query for the first n rows of each group, at instants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.language.evaluate import evaluate
from midstream.language.expression import Column
from midstream.language.top_n import RANK
from midstream.language.types import family
from midstream.operators.aggregate import AggregateOperator, group_numbers
from midstream.operators.collected import rank
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, with_time
from midstream.state.combinations import Combinations, Words


@dataclass(frozen=True)
class TopNOperator(AggregateOperator):
    """At each instant the first n of the results that are alive, in each group.

    Results that are equal in what they are ordered by stand in the order of what is selected: so no plan, and no number
    of lanes, decides which come first.
    """

    @override
    def _grouped(self, lane: Lane, alive: Combinations, at: Words, instants: Words) -> Answer:
        aggregate = self.query.aggregate
        assert aggregate is not None and aggregate.top is not None
        read, take = lane.reader(self.rows, alive), pa.array(at)
        groups = [evaluate(group, read, len(alive)).take(take) for group in aggregate.groups]
        numbers, _ = group_numbers(pa.array(instants), groups)
        keys = [rank(evaluate(e, read, len(alive)).take(take), descending=down) for e, down in aggregate.top.order]
        shown = with_time(lambda column: read(column).take(take), instants)
        plain = [o.expression for o in self.query.outputs if _orders(o.expression)]
        ties = [rank(evaluate(expression, shown, len(at))) for expression in plain]
        order = np.lexsort((*reversed(ties), *reversed(keys), numbers))
        counts = np.bincount(numbers)
        position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = position < aggregate.top.count
        chosen, position = order[first], position[first]
        where, when = pa.array(at[chosen]), instants[chosen]

        def of_chosen(column: Column) -> pa.Array:
            return pa.array(position + 1) if column == RANK else read(column).take(where)

        return self.answer(self.values(with_time(of_chosen, when), len(chosen)), when)


def _orders(expression: object) -> bool:
    """Whether what is selected decides which of equal results comes first."""
    kind = family(getattr(expression, "type", pa.null()))
    reads_rank = RANK in getattr(expression, "columns", lambda: ())()
    return kind not in ("other", "null") and not reads_rank
