"""Trees over many sources: greedily joined, then bettered by local search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.search.subsets import Subsets
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Join, Leaf, MultiJoin, Plan

MOST_ROUNDS = 100
"""Of a local search: a bound that is not met, for each round is better than the one before."""


def searched_trees(
    subsets: Subsets,
    cost: CostModel,
    estimate: Estimate | Sizes,
    count: int,
    kept: frozenset[Sources] = frozenset(),
    starts: Iterable[Plan] = (),
) -> list[Plan]:
    """The `count` cheapest trees that a local search meets from the greedy one, and from `starts`; cheapest first.

    A neighbour of a tree exchanges two of the three subplans below a pair of joins. As in OM §4.2 (3) the search takes
    the best neighbour until none is better; there it goes over left-deep orders only.
    """
    met: dict[Plan, float] = {}
    sizes = Sizes.of(estimate)

    def value(plan: Plan) -> float:
        if plan not in met:
            met[plan] = cost.of(plan, sizes, kept).value
        return met[plan]

    for start in (greedy_tree(subsets), *starts):
        here = start
        for _ in range(MOST_ROUNDS):
            around = [tree for tree in neighbours(here) if not _crosses_needlessly(tree, subsets)]
            best = min(around, key=lambda tree: (value(tree), tree.notation()), default=here)
            if not value(best) < value(here):
                break
            here = best
    return sorted(met, key=lambda tree: (met[tree], tree.notation()))[:count]


def greedy_tree(subsets: Subsets) -> Plan:
    """Always joins the two subplans whose join is smallest, of those that a condition ties."""
    parts = {1 << i: Leaf(alias) for i, alias in enumerate(subsets.aliases)}
    trees: dict[int, Plan] = dict(parts)
    while len(trees) > 1:
        pairs = [(one, other) for one in trees for other in trees if one < other]
        joinable = [(one, other) for one, other in pairs if subsets.is_joinable(one | other)] or pairs
        one, other = min(joinable, key=lambda pair: (subsets.sizes.rows(subsets.sources(pair[0] | pair[1])), pair))
        trees[one | other] = Join(trees.pop(one), trees.pop(other))
    return trees[subsets.full]


def neighbours(plan: Plan) -> Iterator[Plan]:
    """Every tree with two of the three subplans below a pair of joins exchanged.

    >>> [tree.notation() for tree in neighbours(Join(Join(Leaf("A"), Leaf("B")), Leaf("C")))]
    ['((C B) A)', '((A C) B)']
    """
    if not isinstance(plan, Join):
        return
    left, right = plan.left, plan.right
    if isinstance(left, Join):
        yield Join(Join(right, left.right), left.left)
        yield Join(Join(left.left, right), left.right)
    if isinstance(right, Join):
        yield Join(right.left, Join(left, right.right))
        yield Join(right.right, Join(right.left, left))
    yield from (Join(tree, right) for tree in neighbours(left))
    yield from (Join(left, tree) for tree in neighbours(right))


def greedy_orders(subsets: Subsets) -> MultiJoin:
    """Probing orders where every input goes on with the source that it meets least."""
    return MultiJoin(tuple((alias, _greedy_order(subsets, i)) for i, alias in enumerate(subsets.aliases)))


def _greedy_order(subsets: Subsets, start: int) -> tuple[str, ...]:
    here, order = 1 << start, list[str]()
    while here != subsets.full:
        left = [i for i in range(subsets.count) if not here >> i & 1]
        tied = [i for i in left if subsets.is_joinable(here | 1 << i)] or left
        following = min(tied, key=lambda i: (subsets.sizes.rows(subsets.sources(here | 1 << i)), i))
        order.append(subsets.aliases[following])
        here |= 1 << following
    return tuple(order)


def _crosses_needlessly(plan: Plan, subsets: Subsets) -> bool:
    masks: Sequence[int] = [subsets.mask(part.aliases()) for part in plan.walk()]
    return not all(map(subsets.is_joinable, masks))
