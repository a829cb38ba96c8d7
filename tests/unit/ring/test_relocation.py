"""Aggressive relocation (Eq. 14.1): every node has a slice of the longer ring then, and rows only go onward."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from midstream.ring.columns import Words
from midstream.ring.relocate import Relocation, relocated, ring_of
from midstream.ring.slice_table import SliceTable

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


def full(nodes: int, length: int, rounds: int = 1) -> SliceTable:
    """A ring whose slices are all full, one row for each moment; it has gone round some times."""
    return SliceTable((0,), (0,)).grown(np.arange(rounds * nodes * length), length, nodes)


def homes(table: SliceTable, nodes: int, length: int) -> Words:
    return np.array(table.nodes, np.int64)[table.place(np.arange(nodes * length))]


@pytest.mark.parametrize(("nodes", "added"), RINGS)
def test_each_node_passes_on_what_the_equation_says(nodes: int, added: int) -> None:
    """Rows counted by the node they were at and the node they are at then: those to the next old one are Delta S_i."""
    length, unit, move = 12 * (nodes + added), 12 * nodes, Relocation(nodes, added)
    table = full(nodes, length)
    cut, ring = relocated(table, range(nodes), range(nodes + added), length)
    was, now = homes(table, nodes, length), homes(cut, nodes, length)
    assert Counter(now.tolist()) == dict.fromkeys(range(nodes + added), unit)
    from_head, came = table.nodes[::-1], Fraction(0)
    for at, (node, passed) in enumerate(zip(from_head, move.passed_on(), strict=True), 1):
        left = Counter(now[was == node].tolist())
        assert left[node] == (1 - came) * unit
        assert sum(rows for to, rows in left.items() if to >= nodes) == move.behind().count(at) * unit
        assert left[from_head[at % nodes]] == passed * unit or nodes == 1
        assert sum(left.values()) == length
        came = passed
    assert ring == ring_of(from_head, range(nodes + added))


@pytest.mark.parametrize(("nodes", "added"), RINGS)
def test_a_ring_that_loses_nodes_is_even_again(nodes: int, added: int) -> None:
    length = 12 * nodes
    table = full(nodes + added, length, rounds=2)
    cut, ring = relocated(table, tuple(range(nodes + added)), range(nodes), length)
    last = np.array(cut.nodes)[cut.place(np.arange((nodes + added) * length, 2 * (nodes + added) * length))]
    assert Counter(last.tolist()) == dict.fromkeys(range(nodes), 12 * (nodes + added))
    assert sorted(ring) == list(range(nodes))
