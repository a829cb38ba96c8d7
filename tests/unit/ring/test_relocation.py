"""Aggressive relocation (Eq. 14.1): every node has a slice of the longer ring then, and rows only go onward."""

from __future__ import annotations

from fractions import Fraction

import pytest

from midstream.ring.relocation import Relocation

RINGS = [(nodes, added) for nodes in range(1, 9) for added in range(1, 7)]


@pytest.mark.parametrize(("nodes", "added"), RINGS)
def test_every_node_has_an_equal_slice_afterwards(nodes: int, added: int) -> None:
    """Each old node keeps one of the new slices, fills the new nodes behind it, and passes on just what is left."""
    move = Relocation(nodes, added)
    old, came = Fraction(nodes + added, nodes), Fraction(0)
    for node, passed in enumerate(move.passed_on(), 1):
        assert came + old == 1 + move.behind().count(node) + passed
        came = passed
    assert came == 0


@pytest.mark.parametrize(("nodes", "added"), RINGS)
def test_a_new_node_stands_behind_the_first_that_can_fill_it(nodes: int, added: int) -> None:
    move = Relocation(nodes, added)
    for new, old in enumerate(move.behind(), 1):
        assert Fraction(added, nodes) * old >= new > Fraction(added, nodes) * (old - 1)
    order = move.order()
    assert len(order) == nodes + added
    assert [node for node in order if node] == list(range(1, nodes + 1))


def test_as_printed_the_last_new_node_would_stand_nowhere() -> None:
    """By the text (M / N) k > j for some k: of one node added to three, none is greater than 1."""
    assert max(Fraction(1, 3) * node for node in range(1, 4)) == 1
    assert Relocation(3, 1).behind() == [3]
