"""What queries that share a plan need of a join: the demands that no other covers."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.model.sharing import Demand, Demands, SourceFilter
from midstream.operators.need import ProbeClass, demand_text, maximal, need_of
from midstream.state.lineage import Lineage

BOTH = frozenset("AB")
STRICT = "A.k > 1"


def demands(a: int, b: int, where: str = "") -> Demands:
    return {"A": Demand("A", where, a), "B": Demand("B", "", b)}


def lineages(size: int, *more: SourceFilter, kind: str = "range") -> Mapping[str, Lineage]:
    everything = SourceFilter(0, (), size, since=0)
    return {"A": Lineage((everything, *more), "A", kind), "B": Lineage((everything,), "B", kind)}


def sizes(found: tuple[Demands, ...]) -> list[tuple[int, int]]:
    return [(one["A"].size, one["B"].size) for one in found]


def test_a_demand_is_covered_by_wider_windows_of_the_same_filters() -> None:
    assert sizes(maximal([demands(2, 2), demands(5, 5), demands(5, 3)], BOTH)) == [(5, 5)]
    assert sizes(maximal([demands(2, 9), demands(9, 2)], BOTH)) == [(2, 9), (9, 2)]
    assert sizes(maximal([demands(2, 2), demands(5, 5, STRICT)], BOTH)) == [(2, 2), (5, 5)]


def test_only_the_sources_below_count() -> None:
    assert [set(one) for one in maximal([demands(2, 9), demands(9, 2)], frozenset("A"))] == [{"A"}]


def test_nothing_is_needed_where_rows_live_as_long_as_the_one_query_that_covers_all() -> None:
    assert need_of([demands(5, 5), demands(2, 2)], BOTH, lineages(5)) is None
    assert need_of([demands(5, 5)], BOTH, lineages(9)) is not None, "rows are kept for another plan"
    strict = SourceFilter(1, (STRICT,), 5, since=0)
    assert need_of([demands(5, 5)], BOTH, lineages(5, strict)) is not None, "rows pass filters of different queries"


def test_how_far_rows_probe_is_the_widest_window_of_the_queries_of_their_filter() -> None:
    strict = SourceFilter(1, (STRICT,), 9, since=0)
    need = need_of([demands(2, 3), demands(9, 4, STRICT)], BOTH, lineages(9, strict))
    assert need is not None
    assert need.widest == 9
    assert need.classes("A", older=True) == ([ProbeClass((0,), (), 3), ProbeClass((1,), (), 4)], [3, 4])
    assert need.classes("A", older=False) == ([ProbeClass((0,), (), 3), ProbeClass((1,), (), 9)], [3, 9])
    assert need.classes("B", older=True) == ([ProbeClass((0,), (), 9)], [9])


def test_pairs_probe_as_far_as_their_filters_and_inner_windows_let_them() -> None:
    need = need_of([demands(2, 3), demands(9, 4, STRICT)], BOTH, lineages(9, SourceFilter(1, (STRICT,), 9, since=0)))
    assert need is not None
    assert need.classes("AB", older=False)[0] == [ProbeClass((0, 0), (2, 3), 3), ProbeClass((1, 0), (9, 4), 9)]


def test_windows_that_count_rows_say_nothing_of_times() -> None:
    need = need_of([demands(2, 3)], BOTH, lineages(9, kind="rows"))
    assert need is not None and need.widest is None


def test_the_text_tells_needs_apart_and_not_the_order_of_queries() -> None:
    one, other = demands(2, 9), demands(9, 2, STRICT)
    assert demand_text([one, other], BOTH) == demand_text([other, one, demands(1, 1)], BOTH)
    assert demand_text([one, other], BOTH) == "A[2]{}, B[9]{} or A[9]{A.k > 1}, B[2]{}"
