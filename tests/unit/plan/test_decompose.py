"""Decomposition at common subplans: the examples of HybMig §3.1 and what follows from them."""

from __future__ import annotations

import itertools

import pytest

from midstream.plan.decompose import decompose, same_shape, subplans
from midstream.plan.enumerate import bushy_trees
from midstream.plan.tree import Join, Leaf
from tests.unit.building import plan


def tasks(old: str, new: str) -> list[tuple[str, str]]:
    return [(t.old.notation(), t.new.notation()) for t in decompose(plan(old), plan(new))]


def test_figures_3_and_4_share_the_lowest_join() -> None:
    """(((A B) C) D) to ((A B) (C D)): A B is one source E, the task ((E C) D) to (E (C D)) remains, T1 is trivial."""
    assert tasks("(((A B) C) D)", "((A B) (C D))") == [("((A+B C) D)", "(A+B (C D))")]


def test_figure_5_reduces_below_a_shared_root() -> None:
    """(((A B) C) D) to ((A (B C)) D): the last join is shared, only the order of A, B, C changes."""
    assert tasks("(((A B) C) D)", "((A (B C)) D)") == [("((A B) C)", "(A (B C))")]


def test_figure_5_decomposes_recursively() -> None:
    assert tasks("((((A B) C) D) E)", "(((A (B C)) E) D)") == [
        ("((A B) C)", "(A (B C))"),
        ("((A+B+C D) E)", "((A+B+C E) D)"),
    ]
    assert tasks("(((A B) C) ((D E) F))", "((A (B C)) (D (E F)))") == [
        ("((A B) C)", "(A (B C))"),
        ("((D E) F)", "(D (E F))"),
    ]


def test_a_trivial_task_is_discarded() -> None:
    for notation in ("(A B)", "((A B) C)", "(((A B) C) D)", "((A B) (C D))"):
        assert tasks(notation, notation) == []


def test_sides_do_not_matter() -> None:
    assert tasks("(((A B) C) D)", "(D (C (B A)))") == []
    assert tasks("((A B) (C D))", "((D C) (B A))") == []


def test_nothing_in_common_stays_one_task() -> None:
    assert tasks("(((A B) C) D)", "((A (C D)) B)") == [("(((A B) C) D)", "((A (C D)) B)")]


def test_to_and_from_a_multi_way_join_is_one_task() -> None:
    multi = "[A: B C | B: A C | C: A B]"
    assert tasks("((A B) C)", multi) == [("((A B) C)", multi)]
    assert tasks(multi, "((A B) C)") == [(multi, "((A B) C)")]
    assert tasks(multi, multi) == []


@pytest.mark.parametrize("size", [2, 3, 4])
def test_tasks_are_irreducible_and_rebuild_the_new_plan(size: int) -> None:
    """For all pairs of trees: a task's pieces share no subplan but their whole, and put together they are the plan."""
    trees = list(bushy_trees("ABCD"[:size]))
    for old, new in itertools.product(trees, trees):
        found = decompose(old, new)
        for task in found:
            assert sorted(task.old.aliases()) == sorted(task.new.aliases())
            common = subplans(task.old).keys() & subplans(task.new).keys()
            assert common == {frozenset(task.new.aliases())}
            assert not same_shape(task.old, task.new)
        assert same_shape(old, new) == (not found)
        joins = sum(len(subplans(task.new)) for task in found)
        shared = subplans(old).keys() & subplans(new).keys()
        assert joins <= len(subplans(new)), "a task names no join twice"
        assert len(subplans(new).keys() - shared) == joins - len(found)


def test_subplans_by_their_sources() -> None:
    found = subplans(plan("((A B) (C D))"))
    assert sorted("".join(sorted(sources)) for sources in found) == ["AB", "ABCD", "CD"]
    assert found[frozenset("AB")] == Join(Leaf("A"), Leaf("B"))
    assert subplans(Leaf("A")) == {}
