"""Decomposition at common subplans: the examples of HybMig §3.1 and what follows from them."""

from __future__ import annotations

import itertools

import pytest

from midstream.plan.decompose import decompose, same_shape, subplans
from midstream.plan.tree import Join, Leaf, bushy_trees
from tests.unit.building import plan


def tasks(old: str, new: str) -> list[tuple[str, str]]:
    before, after = plan(old), plan(new)
    return [(t.piece(before).notation(), t.piece(after).notation()) for t in decompose(before, after)]


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


def test_stairs_are_split_like_the_trees_they_keep() -> None:
    assert tasks("stairs((((A B) C) D))", "stairs(((A (B C)) D))") == [("stairs(((A B) C))", "stairs((A (B C)))")]
    assert tasks("((A B) C)", "stairs(((A B) C))") == [("(A B)", "stairs((A B))"), ("(A+B C)", "stairs((A+B C))")]
    assert tasks("stairs(((A B) C))", "stairs((C (B A)))") == []


def test_the_order_of_names_makes_no_task() -> None:
    assert tasks("eddy(A B C)", "eddy(C A B)") == []
    assert tasks("eddy(A B C)", "eddy:rank(A B C)") == [("eddy(A B C)", "eddy:rank(A B C)")]
    assert tasks("[A: B C | B: A C | C: A B]", "[C: A B | B: A C | A: B C]") == []
    assert tasks("[A: B C | B: A C | C: A B]", "[A: C B | B: A C | C: A B]") != []


def test_a_plan_is_split_only_where_it_may_be() -> None:
    old, new = plan("((((A B) C) D) E)"), plan("(((A (B C)) E) D)")

    def pieces(at: list[str] | None) -> list[str]:
        found = decompose(old, new, None if at is None else [frozenset(sources) for sources in at])
        return [task.piece(new).notation() for task in found]

    assert pieces(None) == pieces(["ABC", "ABCDE"]) == ["(A (B C))", "((A+B+C E) D)"]
    assert pieces([]) == pieces(["AB"]) == ["(((A (B C)) E) D)"]


def test_a_single_source_is_a_task_only_where_its_form_changes() -> None:
    assert tasks("A", "A") == []
    assert tasks("A", "[A: ]") == [("A", "[A: ]")]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_tasks_are_irreducible_and_rebuild_the_new_plan(size: int) -> None:
    """For all pairs of trees: a task's pieces share no subplan but their whole, and put together they are the plan."""
    trees = list(bushy_trees("ABCD"[:size]))
    for old, new in itertools.product(trees, trees):
        found = decompose(old, new)
        for task in found:
            before, after = task.piece(old), task.piece(new)
            assert sorted(before.aliases()) == sorted(after.aliases()) == sorted(task.sources)
            common = subplans(before).keys() & subplans(after).keys()
            assert common == {frozenset(after.aliases())}
            assert not same_shape(before, after)
        assert same_shape(old, new) == (not found)
        joins = sum(len(subplans(task.piece(new))) for task in found)
        shared = subplans(old).keys() & subplans(new).keys()
        assert joins <= len(subplans(new)), "a task names no join twice"
        assert len(subplans(new).keys() - shared) == joins - len(found)


def test_subplans_by_their_sources() -> None:
    found = subplans(plan("((A B) (C D))"))
    assert sorted("".join(sorted(sources)) for sources in found) == ["AB", "ABCD", "CD"]
    assert found[frozenset("AB")] == Join(Leaf("A"), Leaf("B"))
    assert subplans(Leaf("A")) == {}
