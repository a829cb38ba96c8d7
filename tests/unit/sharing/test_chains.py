"""Chains move, split, become one, and are checked for what the scheme needs of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream.model.errors import QueryError, StrategyError
from midstream.sharing.chains import check_parts, check_whole, free_name, members, move, renamed, united
from midstream.sharing.filter_partition import MOST_JOINS, count_partitions, partitions_of
from midstream.units.chain_unit import chain_units
from tests.unit.sharing.manifests import at, begun, text, with_queries


def test_a_query_alone_takes_its_chain_along() -> None:
    moved, name = move(with_queries(begun(), q=text(5)), "q", "(B A)", together=False)
    assert name == "q" and moved.chains["q"].plan == moved.queries["q"].plan == "(B A)"


def test_a_query_among_others_splits_from_them_unless_they_go_together() -> None:
    both = at(with_queries(begun(), q=text(5), r=text(9)), 4, 100)
    split, name = move(both, "r", "(B A)", together=False)
    assert (members(split, "q"), members(split, name)) == (["q"], ["r"])
    assert (split.chains[name].split_from, split.chains[name].since) == ("(A B)", 4)
    assert split.chains[name].sources == split.chains["q"].sources
    together, same = move(both, "r", "(B A)", together=True)
    assert same == "q" and {e.plan for e in together.queries.values()} == {"(B A)"}


def test_chains_that_have_come_to_one_plan_are_one_once_no_migration_is_under_way() -> None:
    both = with_queries(begun(), q=text(5), r=text(9))
    split, name = move(both, "r", "(B A)", together=False)
    back = replace(split, chains={**split.chains, name: replace(split.chains[name], plan="(A B)")})
    assert members(united(back), "q") == ["q", "r"] and set(united(back).chains) == {"q"}
    busy = back.with_query("r", replace(back.queries["r"], migrations={"m": {}}))
    assert united(busy) is busy
    assert united(split) is split


def test_a_renamed_chain_keeps_its_queries() -> None:
    other = renamed(with_queries(begun(), q=text(5), r=text(9)), "q")
    assert set(other.chains) == {"q.1"} and members(other, "q.1") == ["q", "r"]
    assert free_name(other, "q") == "q.2"


def test_a_scheme_that_partitions_refuses_too_many_joins_and_plans_that_move() -> None:
    filters = [f"{a}.v > {n}" for n in range(4) for a in "AB"]
    many = with_queries(begun(), **{f"q{n}": text(5, where) for n, where in enumerate(filters)})
    check_parts(many, "q0")
    check_whole(many, "q0")
    partitioned = replace(many, sharing="push_down")
    with pytest.raises(QueryError, match=r"push_down would need \d+ joins.*the limit is 64.*mem_opt"):
        check_parts(partitioned, "q0")
    with pytest.raises(StrategyError, match=r"query 'q0' cannot change its plan, because push_down runs.*mem_opt"):
        check_whole(partitioned, "q0")
    check_whole(replace(with_queries(begun(), q=text(5)), sharing="push_down"), "q")


@pytest.mark.parametrize("reshared", [False, True])
@pytest.mark.parametrize("history", [False, True])
def test_as_many_joins_are_refused_as_would_be_compiled(history: bool, reshared: bool) -> None:
    """A filter that all rows were tested by splits none, and rows that pass no filter are not kept."""
    filters = ["", *(f"{a}.v > {n}" for n in range(3) for a in "AB")]
    texts = {f"q{n}": text(5, where) for n, where in enumerate(filters)}
    many = with_queries(begun(sharing="push_down"), history=history, **texts)
    if reshared:
        many = replace(at(many, 4, 100), reshared=4)
    check_parts(many, "q0")
    (unit,) = chain_units(many, many.queries["q0"].group)
    assert len(unit.answers.joins) <= MOST_JOINS
    per_source = [len(list(partitions_of(lineage))) for lineage in unit.answers.lineages.values()]
    assert [count_partitions(lineage) for lineage in unit.answers.lineages.values()] == per_source == [8, 8]
    more = with_queries(many, history=history, q9=text(5, "A.v > 9"))
    with pytest.raises(QueryError, match="push_down would need 128 joins"):
        check_parts(more, "q9")
