"""What `explain` shows, letter by letter."""

from __future__ import annotations

import json

from tests.unit.building import both, engine, table

JOIN = "SELECT A.k FROM A [RANGE 5 SECONDS], B [ROWS 3], C [RANGE 1 DAY] WHERE A.k = B.k AND B.v < C.v AND A.j > 3"


def test_a_tree_in_text() -> None:
    made = engine("ABC")
    made.add_query("q", JOIN)
    assert made.explain("q").splitlines() == [
        "query q",
        "plan  ((A B) C)",
        "lanes 1 lane, no common key",
        "window_join band B.v ~ C.v where B.v < C.v",
        "├─ window_join hash A.k = B.k",
        "│  ├─ source A [5 s] where A.j > 3",
        "│  └─ source B [3 rows]",
        "└─ source C [1 d]",
    ]


def test_lanes_by_a_common_key() -> None:
    made = engine("AB", lanes=4)
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS", plan="[B: A | A: B]")
    assert made.explain("q").splitlines()[1:] == [
        "plan  [B: A | A: B]",
        "lanes 4 lanes, by the common key",
        "multi_join [B: A | A: B]",
        "├─ source B [5 s]",
        "└─ source A [5 s]",
    ]


def test_live_counters_and_states() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k AND A.v < B.v WINDOW 5 SECONDS")
    assert made.explain("q", analyze=True).count("(nothing yet)") == 3
    made.push({"A": table([1, 1], k=[1, 2], v=[1, 1]), "B": table([1, 2], k=[1, 1], v=[0, 2])})
    lines = made.explain("q", analyze=True).splitlines()
    assert lines[3] == (
        "window_join hash A.k = B.k where A.v < B.v  (rows_in 4, comparisons 2, predicates 2, rows_out 1)"
    )
    assert lines[4] == "├─ source A [5 s]  (rows_in 2, rows_out 2)"
    assert lines[6] == "states"
    assert lines[7:] == ["  A by A.k: 2 rows", "  B by B.k: 2 rows", "  rows of A: 2 rows", "  rows of B: 2 rows"]


def test_as_values() -> None:
    made = engine("ABC")
    made.add_query("q", JOIN)
    made.push(both("ABC", table([1], k=[1], j=[4], v=[1.0])))
    found = made.explain("q", analyze=True, format="json")
    assert json.loads(json.dumps(found)) == found
    assert (found["query"], found["sql"], found["plan"], found["since"], found["lanes"]) == (
        "q",
        JOIN,
        "((A B) C)",
        0,
        1,
    )
    assert found["migration"] is None
    (root,) = found["operators"]
    assert [child["operator"].split()[0] for child in root["inputs"]] == ["window_join", "source"]
    assert root["inputs"][0]["counters"] == {"rows_in": 2, "comparisons": 1, "rows_out": 1}
    assert found["counters"]["rows_in"] == 3
    assert sum(found["states"].values()) == 7


def test_an_aggregate_and_a_difference() -> None:
    made = engine("AB")
    made.add_query("n", "SELECT A.k, COUNT(*) AS n FROM A [RANGE 5 SECONDS] GROUP BY A.k EVERY 5 SECONDS")
    made.add_query("d", "SELECT A.k FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 5 SECONDS]")
    assert made.explain("n").splitlines()[1:] == [
        "plan  A",
        "lanes 1 lane, by the common key",
        "source A [5 s]",
    ]
    assert made.explain("d").splitlines()[3:] == [
        "source A [5 s]",
        "window_join hash A.k = B.k",
        "├─ source A [5 s]",
        "└─ source B [5 s]",
    ]
