"""What `explain` draws of a chain, letter by letter, and that its figures are those of the state itself."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from midstream.checkpoint.report import report
from midstream.checkpoint.running_states import running_boxes, state_names
from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.units.lane_load import state_rows
from midstream.units.program import unit_of
from tests.unit.building import both, engine, table

THREE = {
    "q1": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "q2": "SELECT x.j AS a, y.j AS b FROM A x, B y WHERE x.k = y.k AND x.v > 3 WINDOW 20 SECONDS",
    "q3": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k AND A.v > 3 AND A.j < 7 AND B.v < 9 WINDOW 60 SECONDS",
}


def three(sharing: str, steps: int = 40) -> Any:
    made = engine("AB", sharing=sharing)
    for name, sql in THREE.items():
        made.add_query(name, sql)
    for at in range(0, 2 * steps, 2):
        made.push(both("AB", table([at, at + 1], j=[at % 8, 2], k=[1, 2], v=[at % 11, 1.0])))
    return made


def drawn(made: Any, query: str, *, analyze: bool = False) -> list[str]:
    """The lines from the chain on, without the states' names."""
    lines = made.explain(query, analyze=analyze).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("chain "))
    return lines[first : lines.index("states") if "states" in lines else None]


LINEAGE = """\
└─ lineage
   ├─ A
   │  ├─ bit 0  5 s, 1 query  every row
   │  ├─ bit 1  20 s, 1 query  A.v > 3.0
   │  └─ bit 2  1 min, 1 query  A.j < 7 and A.v > 3.0
   └─ B
      ├─ bit 0  20 s, 2 queries  every row
      └─ bit 1  1 min, 1 query  B.v < 9.0
"""

SLICES = (
    """\
├─ slice 1  [0 s, 5 s]  read by q1, q2, q3
├─ filter  A: A.v > 3.0
├─ slice 2  (5 s, 20 s]  read by q2, q3
├─ filter  A: A.j < 7 and A.v > 3.0
│          B: B.v < 9.0
├─ slice 3  (20 s, 1 min]  read by q3
├─ route  a result goes where its slice and its rows' lineage say
"""
    + LINEAGE
)

PARTS = (
    """\
chain q1  push_down, 3 queries, 3 windows, 8 joins, plan (A B)
├─ join  read by q1
│     A [5 s]: not (A.j < 7 and A.v > 3.0) and not (A.v > 3.0)
│     B [5 s]: not (B.v < 9.0)
├─ join  read by q1
│     A [5 s]: not (A.j < 7 and A.v > 3.0) and not (A.v > 3.0)
│     B [5 s]: B.v < 9.0
├─ join  read by q1, q2
│     A [20 s]: A.v > 3.0 and not (A.j < 7 and A.v > 3.0)
│     B [20 s]: not (B.v < 9.0)
├─ join  read by q1, q2
│     A [20 s]: A.v > 3.0 and not (A.j < 7 and A.v > 3.0)
│     B [20 s]: B.v < 9.0
├─ join  read by q1
│     A [5 s]: A.j < 7 and A.v > 3.0 and not (A.v > 3.0)
│     B [5 s]: not (B.v < 9.0)
├─ join  read by q1, q3
│     A [1 min]: A.j < 7 and A.v > 3.0 and not (A.v > 3.0)
│     B [1 min]: B.v < 9.0
├─ join  read by q1, q2
│     A [20 s]: A.j < 7 and A.v > 3.0 and A.v > 3.0
│     B [20 s]: not (B.v < 9.0)
├─ join  read by q1, q2, q3
│     A [1 min]: A.j < 7 and A.v > 3.0 and A.v > 3.0
│     B [1 min]: B.v < 9.0
├─ route  every result of a join is held against the windows of its queries
"""
    + LINEAGE
)

ROUTER = """\
chain q1  pull_up, 3 queries, 3 windows, 1 slice, plan (A B)
├─ slice 1  [0 s, 1 min]  read by q1, q2, q3
├─ route  every result is held against each query's windows and filters
│  ├─ q1  A [5 s], B [5 s]
│  ├─ q2  A [20 s] where A.v > 3.0, B [20 s]
│  └─ q3  A [1 min] where A.j < 7 and A.v > 3.0, B [1 min] where B.v < 9.0
└─ lineage
   ├─ A
   │  └─ bit 62  1 min, 3 queries  every row
   └─ B
      └─ bit 62  1 min, 3 queries  every row
"""

DRAWN = {
    **{
        m: f"chain q1  {m}, 3 queries, 3 windows, 3 slices, plan (A B)\n{SLICES}"
        for m in ("auto", "mem_opt", "cpu_opt")
    },
    "pull_up": ROUTER,
    "push_down": PARTS,
}


@pytest.mark.parametrize("sharing", DRAWN)
def test_three_queries_in_every_mode(sharing: str) -> None:
    made = three(sharing, steps=4)
    assert drawn(made, "q2") == DRAWN[sharing].splitlines()


def test_what_stands_before_the_chain() -> None:
    assert three("mem_opt", steps=1).explain("q2").splitlines()[:8] == [
        "query q2",
        "plan  (x y)",
        "lanes 1 lane, by the common key",
        "sees  all rows",
        "reads A [20 s] where A.v > 3.0, B [20 s]",
        "window_join hash A.k = B.k",
        "├─ source A by lineage",
        "└─ source B by lineage",
    ]


def test_with_counters() -> None:
    assert drawn(three("mem_opt"), "q2", analyze=True) == [
        "chain q1  mem_opt, 3 queries, 3 windows, 3 slices, plan (A B)",
        "├─ slice 1  [0 s, 5 s]  read by q1, q2, q3",
        "│     A 6 rows, B 6 rows, 536 comparisons",
        "├─ filter  A: A.v > 3.0",
        "├─ slice 2  (5 s, 20 s]  read by q2, q3",
        "│     A 6 rows, B 19 rows, 328 comparisons",
        "├─ filter  A: A.j < 7 and A.v > 3.0",
        "│          B: B.v < 9.0",
        "├─ slice 3  (20 s, 1 min]  read by q3",
        "│     A 13 rows, B 34 rows, 361 comparisons",
        "├─ route  a result goes where its slice and its rows' lineage say",
        "│     3,372 decisions",
        "├─ union  1,124 results, 1,628 rows to the queries",
        "└─ lineage",
        "   ├─ A  25 rows alive",
        "   │  ├─ bit 0  5 s, 1 query  every row",
        "   │  ├─ bit 1  20 s, 1 query  A.v > 3.0",
        "   │  └─ bit 2  1 min, 1 query  A.j < 7 and A.v > 3.0",
        "   └─ B  59 rows alive",
        "      ├─ bit 0  20 s, 2 queries  every row",
        "      └─ bit 1  1 min, 1 query  B.v < 9.0",
    ]
    with_router, with_parts = drawn(three("pull_up"), "q2", analyze=True), drawn(three("push_down"), "q2", analyze=True)
    assert "│     15,436 decisions" in with_router and "│     A 63 rows, B 63 rows, 3,038 comparisons" in with_router
    assert "│     98 rows, 780 comparisons, 780 results" in with_parts


@pytest.mark.parametrize("sharing", DRAWN)
@pytest.mark.parametrize("analyze", [False, True])
def test_as_values(sharing: str, analyze: bool) -> None:
    made = three(sharing, steps=20)
    found = made.explain("q2", analyze=analyze, format="json")
    assert json.loads(json.dumps(found)) == found
    chain = found["chain"]
    assert (chain["chain"], chain["sharing"], chain["plan"]) == ("q1", sharing, "(A B)")
    assert chain["queries"]["q2"] == {
        "reads": {"A": {"window": 20_000_000, "filter": "A.v > 3.0"}, "B": {"window": 20_000_000, "filter": None}},
        "sees": "all",
        "from_step": 0,
        "exact_from": None,
    }
    assert tuple(one["to"] for one in chain["slices"]) == (made.manifest.chains["q1"].cuts or (60_000_000,))
    assert [name for one in chain["slices"] for name in one["ending"]] == ["q1", "q2", "q3"]
    assert chain["slices"][0]["queries"] == 3
    assert ("joins" in chain) == (sharing == "push_down")
    assert all(("rows" in one) == analyze for one in chain["slices"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sharing", [mode for mode in DRAWN if mode != "push_down"])
def test_slices_add_up(sharing: str, seed: int) -> None:
    """Rows to what is alive of each source, comparisons to those of the join, while queries come and go."""
    draw, made = random.Random(seed), engine("AB", sharing=sharing)
    for name, sql in THREE.items():
        made.add_query(name, sql)
    for at in range(40):
        if at == 12:
            made.add_query("late", THREE["q1"].replace("5 SEC", f"{draw.randint(6, 40)} SEC"))
        if at == 30:
            made.drop_query("q2")
        count = draw.randint(0, 5)
        made.push(both("AB", table([at + draw.random() for _ in range(count)], j=range(count),
                                   k=[draw.randint(0, 2) for _ in range(count)], v=range(count))))  # fmt: skip
        chain = made.explain("q3", analyze=True, format="json")["chain"]
        for label, lineage in chain["lineage"].items():
            assert sum(one["rows"][label] for one in chain["slices"]) == lineage["rows"]
        joins = {
            k: c for k, c in made.manifest.operators.items() if k.operator.kind == "join" and k.operator.slice is None
        }
        compared = sum(counters.comparisons for counters in joins.values())
        assert sum(one["comparisons"] for one in chain["slices"]) + chain["elsewhere"] == compared
        if at < 12:
            assert chain["elsewhere"] == 0
    assert compared > 0


def whole_joins(made: Any) -> dict[CounterKey, Counters]:
    """The counters of the joins; those of their slices are part of them."""
    counted = made.manifest.operators
    return {k: c for k, c in counted.items() if k.operator.kind == "join" and k.operator.slice is None}


def test_a_query_added_later_says_what_it_sees() -> None:
    made = three("mem_opt", steps=20)
    made.add_query("wide", THREE["q1"].replace("5 SECONDS", "2 MINUTES"))
    assert made.explain("wide").splitlines()[3:7] == [
        "sees  new rows and those from 1970-01-01 00:00:34 on, exact from 1970-01-01",
        "      00:02:34",
        "reads A [2 min], B [2 min]",
        "window_join hash A.k = B.k",
    ]
    made.push()
    assert made.explain("wide").splitlines()[3] == (
        "sees  new rows and those from 1970-01-01 00:00:34 on, exact from 1970-01-01"
    )
    assert "├─ slice 4  (1 min, 2 min]  read by wide" in drawn(made, "q1")


def test_a_chain_on_its_way_to_another_plan() -> None:
    made = engine("ABC", sharing="mem_opt")
    for name, window in (("short", 5), ("long", 20)):
        sql = f"SELECT A.j AS a FROM A, B, C WHERE A.v <= B.v AND B.k = C.k WINDOW {window} SECONDS"
        made.add_query(name, sql)
    for at in range(12):
        made.push(both("ABC", table([at, at], j=[1, 2], k=[1, at], v=[1.0, at])))
    made.migrate("long", "(A (B C))", "parallel_track", together=True)
    for at in (13, 14):
        made.push(both("ABC", table([at, at], j=[1, 2], k=[1, at], v=[1.0, at])))
    shown = made.explain("short", analyze=True).splitlines()
    assert shown[1] == "plan  (A (B C))"
    assert shown[5].startswith("migration by parallel_track to (A (B C)) since step 12: both plans run")
    assert "├─ old plan" in shown and "└─ new plan" in shown
    assert "chain short  mem_opt, 2 queries, 2 windows, 2 slices, plan (A (B C))" in shown
    chain = made.explain("short", analyze=True, format="json")["chain"]
    joins = whole_joins(made)
    by_slice = [one["comparisons"] for one in chain["slices"]]
    again = {k: c for k, c in made.manifest.operators.items() if k.operator.slice is not None}
    assert sum(by_slice) == sum(counters.comparisons for counters in again.values()) > 0
    assert sum(by_slice) + chain["elsewhere"] == sum(counters.comparisons for counters in joins.values())


def test_windows_that_count_rows() -> None:
    made = engine("AB")
    for size in (3, 9):
        made.add_query(f"q{size}", f"SELECT A.j AS a FROM A [ROWS {size}], B [RANGE 5 SECONDS] WHERE A.k = B.k")
    made.push(both("AB", table([0, 1], k=[1, 2])))
    assert drawn(made, "q3") == [
        "chain q3  auto, 2 queries, 2 windows, 1 slice, plan (A B)",
        "├─ slice 1  [whole windows]  read by q3, q9",
        "├─ route  a result goes where its slice and its rows' lineage say",
        "└─ lineage",
        "   ├─ A",
        "   │  └─ bit 0  9 rows, 2 queries  every row",
        "   └─ B",
        "      └─ bit 0  5 s, 2 queries  every row",
    ]


def test_a_query_alone_in_one_slice_has_no_drawing() -> None:
    made = engine("AB")
    made.add_query("q", THREE["q1"])
    assert "chain" not in made.explain("q")
    assert made.explain("q", format="json")["chain"]["delivery"] == "come"


@pytest.fixture(scope="module")
def thousand() -> Any:
    made = engine("AB", sharing="mem_opt")
    for i in range(1000):
        condition = "" if i < 900 else f" AND A.v > {i % 50}"
        made.add_query(f"q{i:03}", f"SELECT A.j AS a FROM A, B WHERE A.k = B.k{condition} WINDOW {5 + i} SECONDS")
    made.add_query("n", "SELECT COUNT(*) AS n FROM A [RANGE 3 SECONDS] EVERY 1 SECOND")
    for at in range(0, 20, 2):
        made.push(both("AB", table([at, at + 1], k=[1, 2], v=[at % 11, 1.0])))
    return made


def test_a_thousand_queries_fit_on_a_page(thousand: Any) -> None:
    shown = drawn(thousand, "q950")
    assert shown == [
        "chain q000  mem_opt, 1,000 queries, 1,000 windows, 1,000 slices, plan (A B)",
        "├─ slice 1  [0 s, 5 s]  read by q000, q001, q002 and 997 more",
        "├─ slice 2  (5 s, 6 s]  read by q001, q002, q003 and 996 more",
        "├─ slice 3  (6 s, 7 s]  read by q002, q003, q004 and 995 more",
        "├─ ... 947 slices up to 954 s",
        "├─ filter  A: A.v > 0.0 or A.v > 1.0 or A.v > 10.0 or 47 more",
        "├─ slice 951  (954 s, 955 s]  read by q950, q951, q952 and 47 more",
        "├─ ... 48 slices up to 1003 s",
        "├─ filter  A: A.v > 49.0",
        "├─ slice 1000  (1003 s, 1004 s]  read by q999",
        "├─ route  a result goes where its slice and its rows' lineage say",
        "└─ lineage",
        "   ├─ A",
        "   │  ├─ bit 0  904 s, 900 queries  every row",
        "   │  ├─ bit 1  955 s, 2 queries  A.v > 0.0",
        "   │  ├─ bit 2  956 s, 2 queries  A.v > 1.0",
        "   │  └─ ... 48 filters",
        "   └─ B",
        "      └─ bit 0  1004 s, 1,000 queries  every row",
    ]
    analyzed = drawn(thousand, "q950", analyze=True)
    assert len(analyzed) < 40 and max(map(len, analyzed)) <= 80


def test_metrics_of_a_thousand_are_those_of_each(thousand: Any) -> None:
    """Looked at once for a chain; here each query's states are sought by themselves."""
    manifest: Manifest = thousand.manifest
    found = thousand.metrics()["queries"]
    assert found.keys() == manifest.queries.keys()
    for name in ("q000", "q500", "q999", "n"):
        rows, size = of_its_own(manifest, name)
        assert (found[name]["state_rows"], found[name]["state_bytes"]) == (rows, size)
        counters = manifest.queries[name].counters
        assert (found[name]["comparisons"], found[name]["rows_out"]) == (counters.comparisons, counters.rows_out)
    assert {k: c.state_rows for k, c in report(manifest).chains.items()} == {"q000": found["q000"]["state_rows"]}
    assert found["n"]["state_rows"] != found["q000"]["state_rows"] > 0


def of_its_own(manifest: Manifest, name: str) -> tuple[int, int]:
    unit = unit_of(manifest, name)
    wanted = state_names(unit, running_boxes(manifest, unit))
    own = {
        lane: replace(state, states={k: v for k, v in state.states.items() if k in wanted})
        for lane, state in manifest.lane_states.items()
        if lane.group == manifest.queries[name].group
    }
    part = replace(manifest, lane_states=own)
    chunks = {ref.name: ref.bytes for lane in own.values() for one in lane.states.values() for ref in one.chunks}
    return state_rows(part), sum(chunks.values())
