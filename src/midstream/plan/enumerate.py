"""Enumeration of join trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from midstream.plan.tree import Join, Leaf, Plan


def left_deep_trees(aliases: Sequence[str]) -> Iterator[Plan]:
    """Enumerate every left-deep tree, with the two lowest sources in one order only because joins are symmetric.

    >>> [p.notation() for p in left_deep_trees("ABC")]
    ['((A B) C)', '((A C) B)', '((B C) A)']
    """
    if len(aliases) == 1:
        yield Leaf(aliases[0])
        return
    place = {alias: i for i, alias in enumerate(aliases)}
    for order in permutations(aliases):
        if place[order[0]] < place[order[1]]:
            plan: Plan = Leaf(order[0])
            for alias in order[1:]:
                plan = Join(plan, Leaf(alias))
            yield plan


def bushy_trees(aliases: Sequence[str]) -> Iterator[Plan]:
    """Enumerate the join trees of any shape, left-deep ones included, each once up to the sides of its joins.

    There are (2n - 3)!! of them: 3 for three sources, 15 for four, 105 for five.

    >>> sum(1 for _ in bushy_trees("ABCD")), [p.notation() for p in bushy_trees("ABC")]
    (15, ['((A B) C)', '((A C) B)', '(A (B C))'])
    """
    if len(aliases) == 1:
        yield Leaf(aliases[0])
        return
    first, rest = aliases[0], list(aliases[1:])
    # The side that holds the first source is written left, so that mirror images are met once.
    for size in range(len(rest) - 1, -1, -1):
        for chosen in combinations(rest, size):
            others = [alias for alias in rest if alias not in chosen]
            for left in bushy_trees([first, *chosen]):
                for right in bushy_trees(others):
                    yield Join(left, right)
