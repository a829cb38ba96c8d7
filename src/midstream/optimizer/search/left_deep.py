"""OM's own join order: a left-deep one, by local search (OM §4.2, step 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from midstream.plan.tree import Join, Leaf, Plan

Value = Callable[[Plan], float]
"""What a plan costs."""


def left_deep_order(aliases: Sequence[str], value: Value) -> Plan:
    """Find the left-deep tree that no exchange of two sources makes cheaper, from the given order on.

    The paper only says "a local search": here the best exchange is taken until none is better.

    >>> costs = {"((A B) C)": 3.0, "((C B) A)": 2.0, "((A C) B)": 1.0, "((C A) B)": 1.0}
    >>> left_deep_order("BAC", lambda plan: costs.get(plan.notation(), 5.0)).notation()
    '((C A) B)'
    """
    here = list(aliases)
    while True:
        around = [_exchanged(here, i, j) for i, j in combinations(range(len(here)), 2)]
        best = min(around, key=lambda order: (value(left_deep(order)), order), default=here)
        if not value(left_deep(best)) < value(left_deep(here)):
            return left_deep(here)
        here = best


def left_deep(order: Sequence[str]) -> Plan:
    """Build the left-deep tree of an order.

    >>> left_deep("ABC").notation()
    '((A B) C)'
    """
    plan: Plan = Leaf(order[0])
    for alias in order[1:]:
        plan = Join(plan, Leaf(alias))
    return plan


def _exchanged(order: list[str], i: int, j: int) -> list[str]:
    found = list(order)
    found[i], found[j] = found[j], found[i]
    return found
