"""What of the past a query reads when it enters a chain, and from when on it is exact."""

from __future__ import annotations

import pytest

from midstream.model.sharing import ALWAYS, Extent
from midstream.sharing.coverage import next_time, purged_to
from tests.unit.sharing.manifests import at, begun, text, with_queries

NOW = 100
"""The event time up to which both streams have brought rows: their watermark."""


def test_before_the_first_row_every_query_reads_everything() -> None:
    found = with_queries(begun(), q=text(9))
    assert (found.queries["q"].sees, found.queries["q"].exact_from) == ("all", None)
    assert next_time(found, "A") == ALWAYS


@pytest.mark.parametrize(
    ("size", "where", "history", "sees", "exact_from"),
    [
        (20, "", True, "all", None),
        (5, "", True, "all", None),
        (5, "A.k > 1", True, "all", None),
        (30, "", True, NOW - 20, NOW + 10),
        (30, "A.k > 1", True, NOW - 20, NOW + 10),
        (20, "", False, "new", NOW + 1 + 20),
    ],
)
def test_beside_a_query_of_window_20(
    size: int, where: str, history: bool, sees: str | int, exact_from: int | None
) -> None:
    """Rows are kept since the watermark less the window; one that reads further is exact a window later."""
    running = at(with_queries(begun(), wide=text(20)), 5, NOW)
    found = with_queries(running, history, q=text(size, where)).queries["q"]
    assert (found.sees, found.exact_from) == (sees, exact_from)


@pytest.mark.parametrize(("where", "sees"), [("A.v > 1", "all"), ("A.v > 1 AND A.k > 0", "all"), ("A.k > 0", "new")])
def test_a_filter_is_served_by_one_whose_conjuncts_are_among_its_own(where: str, sees: str) -> None:
    running = at(with_queries(begun(), strict=text(20, "A.v > 1")), 5, NOW)
    assert with_queries(running, q=text(20, where)).queries["q"].sees == sees


def test_a_column_that_was_not_kept_serves_only_rows_to_come() -> None:
    running = at(with_queries(begun(), q=text(20)), 5, NOW)
    wider = with_queries(running, more=text(20, column="v"))
    found = wider.queries["more"]
    assert (found.sees, found.from_step, found.exact_from) == ("new", 5, NOW + 1 + 20)
    # A row may arrive that is older than those before it, so the column goes by the step it was first asked for in.
    later = with_queries(at(wider, 7, NOW + 10), last=text(20, column="v")).queries["last"]
    assert (later.sees, later.from_step, later.exact_from) == ("new", 5, NOW + 10 + 1 + 20)


def test_a_column_and_a_window_that_were_not_kept() -> None:
    """The window reaches beyond what was purged, the column is of rows that arrived from a step on: both count."""
    running = with_queries(at(with_queries(begun(), q=text(20)), 5, NOW), more=text(20, column="v"))
    found = with_queries(at(running, 7, NOW + 10), wide=text(50, column="v")).queries["wide"]
    assert (found.sees, found.from_step, found.exact_from) == (NOW - 10, 5, NOW + 10 + 1 + 50)


def test_a_window_that_grows_keeps_rows_from_where_the_narrow_one_had_purged() -> None:
    running = at(with_queries(begun(), q=text(20)), 5, NOW)
    wide = with_queries(running, wide=text(50))
    one = wide.shared_sources[wide.queries["q"].demands["A"].source].filters[""]
    assert (one.size, one.complete, one.kept_from) == (50, Extent(NOW - 20), NOW - 20)


def test_a_filter_without_history_does_not_pass_rows_from_before() -> None:
    running = at(with_queries(begun(), q=text(20)), 5, NOW)
    found = with_queries(running, False, new=text(20, "A.v > 1"))
    filters = found.shared_sources[found.queries["new"].demands["A"].source].filters
    assert filters["gt(A.v, 1::int64)"].future_only and filters["gt(A.v, 1::int64)"].since == 5
    assert with_queries(running, old=text(20, "A.v > 1")).shared_sources != found.shared_sources


def test_rows_are_purged_by_the_least_watermark_of_a_chain_that_reads_them() -> None:
    running = at(with_queries(begun(), q=text(20)), 5, NOW)
    name = running.queries["q"].demands["A"].source
    assert purged_to(running, name) == NOW and purged_to(running, "another") == ALWAYS
