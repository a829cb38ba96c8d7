"""Which keys each state must be complete for in a step: in time, and once (JISC §4, Procedures 1-3)."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.migration.just_in_time.completion import Completion
from midstream.migration.just_in_time.keys import KeyColumn, united
from midstream.migration.just_in_time.probed_state import Fork, ProbedState
from midstream.state.combinations import Combinations
from midstream.state.keys import Codes

Demand = dict[str, dict[str, tuple[KeyColumn, list[Codes]]]]
"""By state and column, the codes it must be complete for."""


def probe(completion: Completion, root: Fork) -> Combinations:
    """Compute a plan's delta, completing each state just before something probes it."""
    forks = list(root.forks())
    _anticipate(completion, forks)
    for fork in forks:
        for one in fork.probes():
            if not completion.is_complete(one.state):
                completion.complete_for(one, one.other.operator.delta(completion.lane))
        fork.join.delta(completion.lane)
    return root.join.delta(completion.lane)


def _anticipate(completion: Completion, forks: Sequence[Fork]) -> None:
    """Complete states for the new rows of the units on the other side of their joins, the deepest first.

    What a higher state must be complete for a deeper one must be too; gathered beforehand, it is completed once.
    Otherwise each of a hundred joins would go down all the way for its own keys.
    """
    demand: Demand = {}
    probed_states: list[ProbedState] = []
    own = {id(side.below): side for fork in forks for side in (fork.left, fork.right) if side.below is not None}
    for fork in reversed(forks):
        if id(fork) in own:
            _pass_on(completion, own[id(fork)], fork, demand)
        for one in fork.probes():
            if completion.is_complete(one.state):
                continue
            probed_states.append(one.state)
            # What other conditions find is compared when it is needed, not once more beforehand.
            if one.other.below is None and one.state.primary is not None and one.state.primary.index != "scan":
                arrived = one.other.operator.delta(completion.lane)
                _want(demand, one.state, one.state.primary, completion.reached(one, arrived))
    for probed in reversed(probed_states):
        for column, codes in demand.get(probed.spec.id, {}).values():
            completion.complete(probed, column, united(codes))


def _pass_on(completion: Completion, probed: ProbedState, fork: Fork, demand: Demand) -> None:
    if completion.is_complete(probed):
        return
    for column, codes in demand.get(probed.spec.id, {}).values():
        order = fork.order(column)
        fresh = completion.fresh(probed, column, united(codes))
        if order.first.below is not None and order.ask is not None:
            _want(demand, order.first, order.ask, fresh)
        elif fork.position(column) is not None and order.other is not None:
            _want(demand, order.second, order.other, fresh)


def _want(demand: Demand, probed: ProbedState, column: KeyColumn, codes: Codes) -> None:
    if len(codes):
        demand.setdefault(probed.spec.id, {}).setdefault(column.name, (column, []))[1].append(codes)
