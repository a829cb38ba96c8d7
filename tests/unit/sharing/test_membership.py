"""Queries enter a chain, leave it, and read something else of it: what the manifest says then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream.model.errors import QueryError
from midstream.sharing.membership import change, enrol, release, settled, unshared
from midstream.sql.parse import bind_query
from midstream.state.lineage import MOST_FILTERS
from tests.unit.sharing.manifests import at, begun, entry, text, with_queries


def test_queries_of_one_join_and_plan_share_a_chain_and_its_sources() -> None:
    found = with_queries(begun(), narrow=text(5), wide=text(9, "A.v > 1"))
    assert set(found.chains) == {"narrow"}
    assert {e.chain for e in found.queries.values()} == {"narrow"}
    source = found.shared_sources[found.chains["narrow"].sources["A"]]
    assert {t: (f.bit, f.size) for t, f in source.filters.items()} == {"": (0, 5), "gt(A.v, 1::int64)": (1, 9)}


def test_another_plan_or_lane_group_is_another_chain_over_the_same_or_other_sources() -> None:
    one = with_queries(begun(), q=text(5))
    turned = enrol(one, "turned", entry(one, text(5), "(B A)"))
    assert set(turned.chains) == {"q", "turned"} and turned.shared_sources.keys() == one.shared_sources.keys()
    apart = enrol(one, "apart", replace(entry(one, text(5)), group="other"))
    assert len(apart.shared_sources) == 2 * len(one.shared_sources)


def test_what_no_other_query_reads_is_kept_no_longer() -> None:
    both = at(with_queries(begun(), narrow=text(5), wide=text(9, "A.v > 1", "v")), 4, 100)
    left = release(both, "wide")
    source = left.shared_sources[left.chains["narrow"].sources["A"]]
    assert {t: f.size for t, f in source.filters.items()} == {"": 5} and set(source.columns) == {"k"}
    assert source.purged_to == 100
    nothing = release(left, "narrow")
    assert (dict(nothing.queries), dict(nothing.chains), dict(nothing.shared_sources)) == ({}, {}, {})


def test_a_chain_named_after_a_query_that_has_ended_gives_the_name_back() -> None:
    left = release(with_queries(begun(), first=text(5), second=text(9)), "first")
    (name,) = left.chains
    assert name != "first" and left.queries["second"].chain == name
    assert (left.chains[name].former_name, left.chains[name].renamed_in) == ("first", 0)


def test_a_change_keeps_what_was_read_before_until_the_manifest_is_settled() -> None:
    before = with_queries(begun(), q=text(9))
    changed = change(before, "q", bind_query(before, text(5, "A.v > 1")))
    name = changed.queries["q"].demands["A"].source
    assert changed.shared_sources[name].filters.keys() == {"", "gt(A.v, 1::int64)"}
    done = settled(changed, changed.queries["q"].demands.values())
    assert {t: f.size for t, f in done.shared_sources[name].filters.items()} == {"gt(A.v, 1::int64)": 5}


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT A.k FROM A, B WHERE A.v = B.v WINDOW 5 MICROSECONDS", "cannot change the streams or the join"),
        ("SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 5 MICROSECONDS", "cannot change the columns"),
        (
            "SELECT COUNT(*) AS k FROM A, B WHERE A.k = B.k WINDOW 5 MICROSECONDS EVERY 1 SECOND",
            "cannot change the streams or the join",
        ),
    ],
)
def test_a_change_to_another_join_or_other_columns_is_refused(sql: str, message: str) -> None:
    before = with_queries(begun(), q=text(9))
    with pytest.raises(QueryError, match=message):
        change(before, "q", bind_query(before, sql))


def test_a_query_that_runs_by_itself_cannot_be_changed() -> None:
    manifest = begun()
    alone = unshared(manifest, "q", entry(manifest, text(5)))
    assert not alone.queries["q"].shares
    with pytest.raises(QueryError, match="runs by itself"):
        change(alone, "q", bind_query(alone, text(9)))


@pytest.mark.parametrize(("sharing", "private"), [("mem_opt", False), ("off", True)])
def test_states_are_private_where_the_scheme_does_not_share(sharing: str, private: bool) -> None:
    manifest = begun(sharing=sharing)
    assert unshared(manifest, "q", entry(manifest, text(5))).queries["q"].private is private


def test_a_filter_that_no_bit_is_left_for_makes_its_query_run_by_itself_and_a_change_is_refused() -> None:
    full = with_queries(begun(), **{f"q{n}": text(5, f"A.v > {n}") for n in range(MOST_FILTERS)})
    assert all(e.shares for e in full.queries.values())
    more = with_queries(full, more=text(5, "A.v < 0"))
    assert not more.queries["more"].shares
    with pytest.raises(QueryError, match=f"a source cannot have more than {MOST_FILTERS} filters"):
        change(full, "q0", bind_query(full, text(5, "A.v < 0")))
