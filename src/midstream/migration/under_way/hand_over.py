"""How a query goes over from one user's operator to another: GMS, GPT and GHM of the operator itself (HybMig §4).

Its state is opaque, so all that can be done is to feed it; and what it is fed are the query's results, which are the
same by whatever plan. So this is independent of what becomes of the plan below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from midstream.migration.strategy_contract import Strategy
from midstream.model.window import EVENT_TIME
from midstream.operators.ensure import ensure, states_of
from midstream.operators.successor import QUEUE, Successor, queued
from midstream.operators.user import Standing, UserResultOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.rows import one_batch


def hand_over(
    result_operator: UserResultOperator,
    results: Sequence[Operator],
    spec: OperatorSpec,
    strategy: Strategy,
    options: Mapping[str, Any],
    mark: str,
    lane: Lane,
) -> None:
    """Begin handing a query over to an operator, before the step's rows are seen; drops a hand-over under way.

    `results` are the roots of the box that runs from this step on.
    """
    standing = result_operator.standing(lane)
    if standing is None:
        return  # Nothing has been fed yet: the query begins with the new operator.
    before = result_operator.watermark(lane.clock.before)
    if spec == standing.spec:
        result_operator.begin(lane, replace(standing, successor=None))
    elif strategy.feeds == "at once":
        rows = result_operator.rows_of(lane, _living(results, lane))
        result_operator.feed(lane, spec, mark, [(rows, before)])
        result_operator.begin(lane, Standing(spec, mark))
    else:
        coming = Successor(spec, mark, before, _end(result_operator, spec, lane))
        if strategy.feeds == "beside":
            result_operator.begin(lane, replace(standing, successor=coming))
        else:
            rows = result_operator.rows_of(lane, _living(results, lane))
            (budget,) = (option.of(options) for option in strategy.options if option.name == "budget")
            coming = replace(coming, budget=budget, waiting=rows.num_rows)
            result_operator.begin(lane, replace(standing, successor=coming), one_batch(queued(rows, before), QUEUE))


def _living(results: Sequence[Operator], lane: Lane) -> Any:
    ensure(lane, states_of(results), event=False)
    return results[0].content(lane)


def _end(result_operator: UserResultOperator, spec: OperatorSpec, lane: Lane) -> int | None:
    # The time until which a result from before this step may matter; None where there is none.
    ends, times = [], []
    for rows in result_operator.rows.values():
        pieces = lane.base(rows).alive(lane.bounds(rows.id))
        if not pieces:
            return None
        ends.append(max(int(piece.valid_to[EVENT_TIME].max()) for piece in pieces))
        times.append(max(int(piece.valid_from[EVENT_TIME].max()) for piece in pieces))
    return max(min(ends), max(times) + spec.remembers())
