"""How many join trees there are, and that each is met once."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from midstream.plan.decompose import same_shape
from midstream.plan.tree import Join, Leaf, bushy_trees, left_deep_trees


@pytest.mark.parametrize("count", range(1, 7))
def test_left_deep_trees_number_half_of_n_factorial(count: int) -> None:
    found = list(left_deep_trees("ABCDEF"[:count]))
    assert len(found) == max(math.factorial(count) // 2, 1)
    assert len(set(found)) == len(found)
    assert all(
        isinstance(tree, Leaf) or isinstance(tree.right, Leaf) for tree in found if isinstance(tree, Leaf | Join)
    )


@pytest.mark.parametrize("count", range(1, 7))
def test_bushy_trees_number_the_odd_double_factorial(count: int) -> None:
    found = list(bushy_trees("ABCDEF"[:count]))
    assert len(found) == math.prod(range(1, 2 * count - 2, 2))
    assert all(sorted(tree.aliases()) == list("ABCDEF"[:count]) for tree in found)


def test_no_two_bushy_trees_are_mirror_images() -> None:
    assert not any(same_shape(one, other) for one, other in combinations(list(bushy_trees("ABCD")), 2))


def test_every_left_deep_tree_is_among_the_bushy_ones() -> None:
    bushy = list(bushy_trees("ABCD"))
    for tree in left_deep_trees("ABCD"):
        assert sum(same_shape(tree, other) for other in bushy) == 1
