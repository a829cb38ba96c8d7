"""Trees over many sources: improved by local search (OM §4.2, step 3), which can be interrupted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midstream.optimizer.cost.join_cost import JoinMade
from midstream.optimizer.cost.plan_cost import PlansWeighed
from midstream.optimizer.search.subsets import Subsets
from midstream.plan.tree import Join, Leaf, Plan

NOISE = 0.05  # a better neighbour saves more than this share of what two joins take: in samples less means nothing
ROUNDS = 4  # so often a search looks at all neighbours: in figures that change with each step one is always better


@dataclass(frozen=True)
class Searched:
    """How far a local search has come: the best tree so far, how many neighbours it looked `at`, and how many of them
    in vain since it last found a better tree.

    `done` says that nothing was weighed because the search is over. `others` were found next to the tree.
    """

    tree: Plan
    at: int = 0
    tried: int = 0
    done: bool = False
    others: tuple[Plan, ...] = ()


def searched_tree(begun: Searched, subsets: Subsets, weighing: PlansWeighed, limit: int | None = None) -> Searched:
    """Go on from the tree of a search to better neighbours, weighing at most `limit` trees.

    A neighbour of a tree exchanges two of the three subplans below a pair of joins. As in OM §4.2 (3) the search ends
    where no neighbour is better; it takes the first better one, so that it can be interrupted at any time. With a
    `limit` it is over only in a call that weighs nothing: whoever decides then has the whole call's time.
    """
    here, at, tried = begun.tree, begun.at, begun.tried
    around, left = list(exchanges(here)), limit
    while tried < len(around) and at < ROUNDS * len(around):
        if left == 0:
            return Searched(here, at, tried)
        pair, other = around[at % len(around)]
        at, tried = at + 1, tried + 1
        if not subsets.is_joinable(subsets.mask(other.left.aliases())):
            continue
        left = None if left is None else left - 1
        # All other joins stay as they are, so that these two alone are compared.
        if _value(other, subsets, weighing) < (1 - NOISE) * _value(pair, subsets, weighing):
            here, tried = _with(here, pair, other), 0
            around = list(exchanges(here))
    return Searched(here, at, tried, done=left == limit)


def exchanges(plan: Plan) -> Iterator[tuple[Join, Join]]:
    """Enumerate the pairs of joins with three subplans below, each with two of these exchanged.

    >>> from midstream.plan.tree import Leaf
    >>> [other.notation() for _, other in exchanges(Join(Join(Leaf("A"), Leaf("B")), Leaf("C")))]
    ['((C B) A)', '((A C) B)']
    """
    waiting = [plan]
    while waiting:
        here = waiting.pop()
        if not isinstance(here, Join):
            continue
        for inner, other in ((here.left, here.right), (here.right, here.left)):
            if isinstance(inner, Join):
                pair = Join(inner, other) if inner is here.right else here
                yield pair, Join(Join(other, inner.right), inner.left)
                yield pair, Join(Join(inner.left, other), inner.right)
        waiting += here.right, here.left


def _with(plan: Plan, pair: Join, other: Join) -> Plan:
    # Either side of the pair may be written first.
    if not isinstance(plan, Join):
        return plan
    if plan in (pair, Join(pair.right, pair.left)):
        return other
    return Join(_with(plan.left, pair, other), _with(plan.right, pair, other))


def _value(pair: Join, subsets: Subsets, weighing: PlansWeighed) -> float:
    inner, whole = pair.left, frozenset(pair.aliases())
    assert isinstance(inner, Join)
    sides = frozenset(inner.left.aliases()), frozenset(inner.right.aliases()), frozenset(pair.right.aliases())
    joins = (
        JoinMade(sides[0], sides[1], inner=True),
        JoinMade(sides[0] | sides[1], sides[2], inner=len(whole) < subsets.count),
    )
    return weighing.of_joins([one for one in joins if one.left | one.right not in weighing.kept])


def connected_tree(subsets: Subsets) -> Plan:
    """Return a left-deep tree in the order of the sources, without needless cross products."""
    here, order = 1, [subsets.aliases[0]]
    while here != subsets.full:
        left = [i for i in range(subsets.count) if not here >> i & 1]
        following = next((i for i in left if subsets.is_joinable(here | 1 << i)), left[0])
        order.append(subsets.aliases[following])
        here |= 1 << following
    return left_deep(order)


def left_deep(order: Sequence[str]) -> Plan:
    """Build the left-deep tree of an order.

    >>> left_deep("ABC").notation()
    '((A B) C)'
    """
    plan: Plan = Leaf(order[0])
    for alias in order[1:]:
        plan = Join(plan, Leaf(alias))
    return plan
