"""What a unit stands on when a box runs it: states, and the ids that count its work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from midstream.model.counters import NOTHING
from midstream.model.ids import OperatorId, StateId
from midstream.operators.ensure import states_of
from midstream.operators.source import SourceOperator
from midstream.runtime.operator import Operator
from midstream.runtime.resting import RestingStates
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class Requirements:
    """The `specs` of the states that are read, base rows included; the ids of all `states`, tables and queues that must
    be listed for the unit to go on; the ids that are `counted`, sorted; and what may rest, if all operators do.
    """

    specs: tuple[StateSpec | RowsSpec, ...]
    states: frozenset[StateId]
    counted: tuple[OperatorId, ...]
    resting: RestingStates | None

    @staticmethod
    def of(
        roots: Sequence[Operator],
        kept: Iterable[StateSpec],
        queues: Iterable[StateId],
        counters: Iterable[OperatorId],
    ) -> Requirements:
        """Collect the requirements of the operators of these roots, and of a unit's `kept` states, `queues` and
        `counters`."""
        operators = [operator for root in roots for operator in root.walk()]
        rows = [op.spec for op in operators if isinstance(op, SourceOperator) and op.spec.kept]
        specs: tuple[StateSpec | RowsSpec, ...] = (*kept, *(spec for _, spec in states_of(roots)), *rows)
        tables = {table for operator in operators for table in operator.tables()}
        states = frozenset({*queues, *tables, *(spec.id for spec in specs)})
        counted = {id for operator in operators for id in operator.counted} | set(map(OperatorId.of_state, states))
        return Requirements(specs, states, tuple(sorted(counted | set(counters))), _resting(operators, specs))


def _resting(operators: Sequence[Operator], specs: Sequence[StateSpec | RowsSpec]) -> RestingStates | None:
    # None unless every operator of the plan rests where nothing reaches it.
    if not all(operator.rests for operator in operators):
        return None
    counted = (*(operator.id for operator in operators), *(OperatorId.of_state(spec.id) for spec in specs))
    # Where chunks are listed by slices, they move on as time goes by.
    still = (spec for spec in specs if spec.lineage is None or len(spec.lineage.cuts) < 2)
    return RestingStates(
        {spec.id: spec for spec in specs},
        {spec.id: spec.lineage.digest if spec.lineage else "" for spec in still},
        dict.fromkeys(counted, NOTHING),
    )
