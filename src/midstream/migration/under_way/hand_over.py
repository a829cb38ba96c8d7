"""How a query goes over from one user's operator to another: GMS, GPT and GHM of the operator itself (HybMig §4).

Its state is opaque, so all that can be done is to feed it; and what it is fed are the query's results, which are the
same by whatever plan. So this is independent of what becomes of the plan below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from midstream.migration.base import Strategy, ensure, states_of
from midstream.migration.ghm import BUDGET
from midstream.model.window import EVENT_TIME
from midstream.operators.base import Operator
from midstream.operators.successor import Successor, one_batch, queued
from midstream.operators.user import Standing, UserOutlet
from midstream.operators.user_operator import OperatorSpec
from midstream.state.lane import Lane


def hand_over(
    outlet: UserOutlet,
    results: Sequence[Operator],
    spec: OperatorSpec,
    strategy: Strategy,
    options: Mapping[str, Any],
    mark: str,
    lane: Lane,
) -> None:
    """Begin to hand over to an operator, before the step's rows are seen; a hand-over under way is given up for it.

    `results` are the roots of the box that runs from this step on.
    """
    standing = outlet.standing(lane)
    if standing is None:
        return  # Nothing has been fed yet: the query begins with the new operator.
    before = outlet.watermark(lane.clock.before)
    if spec == standing.spec:
        outlet.begin(lane, replace(standing, successor=None))
    elif strategy.feeds == "at once":
        rows = outlet.rows_of(lane, _living(results, lane))
        outlet.feed(lane, spec, mark, [(rows, before)])
        outlet.begin(lane, Standing(spec, mark))
    else:
        coming = Successor(spec, mark, before, _end(outlet, spec, lane))
        if strategy.feeds == "beside":
            outlet.begin(lane, replace(standing, successor=coming))
        else:
            rows = outlet.rows_of(lane, _living(results, lane))
            coming = replace(coming, budget=options.get("budget", BUDGET), waiting=rows.num_rows)
            outlet.begin(lane, replace(standing, successor=coming), one_batch(queued(rows, before)))


def _living(results: Sequence[Operator], lane: Lane) -> Any:
    ensure(lane, states_of(results), event=False)
    return results[0].content(lane)


def _end(outlet: UserOutlet, spec: OperatorSpec, lane: Lane) -> int | None:
    """Until when a result that came before may matter; None where there is none."""
    ends, times = [], []
    for rows in outlet.rows.values():
        pieces = lane.base(rows).alive(lane.bounds.get(rows.id, {}))
        if not pieces:
            return None
        ends.append(max(int(piece.until[EVENT_TIME].max()) for piece in pieces))
        times.append(max(int(piece.now[EVENT_TIME].max()) for piece in pieces))
    return max(min(ends), max(times) + spec.remembers())
