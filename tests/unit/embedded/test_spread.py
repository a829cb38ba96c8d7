"""Queries that are spread over nodes, through the engine: what is kept where, what is counted, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.node_spread import NodeSpread
from midstream.ring.spreading import spreadings
from tests.unit.building import SECOND

THETA = "SELECT A.x AS a, B.x AS b, C.y AS c FROM A, B, C WHERE A.x < B.x AND B.y <> C.y WINDOW 20 SECONDS"
ONE_KEY = "SELECT A.x AS a, B.y AS b, C.y AS c FROM A, B, C WHERE A.x = B.x AND B.x = C.x WINDOW 20 SECONDS"
TWO_KEYS = "SELECT A.x AS a, B.x AS b, C.y AS c FROM A, B, C WHERE A.x = B.x AND B.y = C.y WINDOW 20 SECONDS"
PLAN = "[A: B C | B: A C | C: B A]"

WITHOUT_COPIES = ("hash_hops", "psp", "psp_d")


def engine(checkpoint: Path | None = None) -> ms.Engine:
    made = ms.Engine(seed=3, checkpoint=checkpoint)
    if not made.manifest.streams:
        for name in "ABC":
            made.create_stream(name, "x BIGINT, y BIGINT, ts TIMESTAMP", timestamp="ts", lateness="2 seconds")
    return made


def rows(step: int, count: int = 8) -> dict[str, pa.Table]:
    """Rows of ten seconds, which overlap with those of the step before."""
    rng = np.random.default_rng(step)
    times = {name: np.sort(rng.integers(8 * step, 8 * step + 10, count)) * SECOND for name in "ABC"}
    return {
        name: pa.table({
            "x": rng.integers(0, 6, count),
            "y": rng.integers(0, 6, count),
            "ts": pa.array(ts, pa.timestamp("us")),
        })
        for name, ts in times.items()
    }  # fmt: skip


def spread_of(made: ms.Engine) -> NodeSpread:
    found = made.manifest.queries["q"].nodes
    assert found is not None
    return found


def answers(made: ms.Engine, steps: range) -> list[list[str]]:
    return [sorted(map(str, made.push(rows(step))["q"].to_pylist())) for step in steps]


def test_no_row_is_kept_twice_and_no_pair_compared_twice() -> None:
    for sql in (THETA, ONE_KEY, TWO_KEYS):
        alone = engine()
        alone.add_query("q", sql, spread="one_lane", nodes=1)
        others = {name: engine() for name in WITHOUT_COPIES}
        for name, other in others.items():
            other.add_query("q", sql, spread=name, nodes=5)
        plain = engine()
        plain.add_query("q", sql, plan=PLAN)
        for step in range(8):
            expected = sorted(map(str, plain.push(rows(step))["q"].to_pylist()))
            for other in (alone, *others.values()):
                assert sorted(map(str, other.push(rows(step))["q"].to_pylist())) == expected
                assert other.metrics()["state_rows"] == plain.metrics()["state_rows"]
                assert other.manifest.totals.comparisons == alone.manifest.totals.comparisons
        # A lane compares rows that no window still has together, too.
        assert 0 < alone.manifest.totals.comparisons <= plain.manifest.totals.comparisons


def test_copies_are_kept_where_they_say_so() -> None:
    """Two where two are named; one or two where moments are in flight; more of slaves than of the master."""
    kept = {}
    for name in ("one_lane", "ctr", "psp_i", "atr"):
        made = engine()
        made.add_query("q", THETA, spread=name, nodes=4)
        answers(made, range(6))
        kept[name] = sum(node.rows for node in spread_of(made).work)
    assert kept["ctr"] == 2 * kept["one_lane"]
    assert kept["one_lane"] < kept["psp_i"] < 2 * kept["one_lane"]
    assert kept["one_lane"] < kept["atr"]


def test_rows_that_grow_older_are_listed_elsewhere_and_never_written_again() -> None:
    made = engine()
    made.add_query("q", THETA, spread="psp", nodes=4)
    for step in range(3):
        before = chunks(made)
        made.push(rows(step))
    written = chunks(made) - before
    assert spread_of(made).moved > 0
    assert len(written) <= 3 * 2  # The step's own rows: for each stream those of the head, and late ones.


def chunks(made: ms.Engine) -> set[str]:
    listings = [listing for lane in made.manifest.lane_states.values() for listing in lane.states.values()]
    return {ref.name for listing in listings for ref in listing.chunks}


@pytest.mark.parametrize("name", spreadings())
def test_an_engine_on_a_checkpoint_goes_on_with_its_nodes(name: str, tmp_path: Path) -> None:
    sql = ONE_KEY if name == "lanes" else THETA
    whole = engine()
    whole.add_query("q", sql, spread=name, nodes=3)
    expected = answers(whole, range(6))
    found = []
    for step in range(6):
        with engine(tmp_path / "checkpoint") as made:
            made.add_query("q", sql, spread=name, nodes=3)
            found += answers(made, range(step, step + 1))
            last = spread_of(made)
    assert found == expected
    assert last == spread_of(whole)


def test_an_engine_that_is_saved_goes_on_with_its_nodes(tmp_path: Path) -> None:
    made = engine()
    made.add_query("q", TWO_KEYS, spread="psp_i", nodes=3)
    answers(made, range(3))
    made.save(tmp_path / "saved")
    loaded = ms.Engine.load(tmp_path / "saved")
    assert answers(loaded, range(3, 6)) == answers(made, range(3, 6))


def test_probing_orders_change_at_any_step_and_nothing_is_carried() -> None:
    still, changing = engine(), engine()
    for made in (still, changing):
        made.add_query("q", THETA, spread="psp_d", nodes=4)
    for step, plan in enumerate(("[A: C B | B: A C | C: A B]", "[A: B C | B: C A | C: A B]", PLAN)):
        changing.migrate("q", plan, strategy="auto" if step else "moving_state")
        assert answers(changing, range(step, step + 1)) == answers(still, range(step, step + 1))
        assert changing.manifest.queries["q"].plan == plan
        assert changing.migration("q") is None
    with pytest.raises(ms.PlanError, match="keeps intermediate results"):
        changing.migrate("q", "((A B) C)")


def test_auto_takes_what_suits_the_join() -> None:
    by_keys_at_every_hop = "SELECT A.x AS a FROM A, B WHERE A.x = B.x AND A.y = B.y WINDOW 20 SECONDS"
    for sql, name in ((ONE_KEY, "lanes"), (by_keys_at_every_hop, "lanes"), (THETA, "psp_d"), (TWO_KEYS, "psp_d")):
        made = engine()
        made.add_query("q", sql, spread="auto")
        made.push(rows(0))
        assert (spread_of(made).scheme, spread_of(made).nodes) == (name, 4)


def test_explain_shows_the_nodes() -> None:
    made = engine()
    made.add_query("q", THETA, spread="psp_d", nodes=3)
    answers(made, range(4))
    shown = made.explain("q", format="json")["nodes"]
    assert shown["scheme"] == "psp_d"
    assert [node["rows"] for node in shown["nodes"]] == [node.rows for node in spread_of(made).work]
    assert sum(node["comparisons"] for node in shown["nodes"]) == made.manifest.totals.comparisons
    assert all(node["slices"]["A"] for node in shown["nodes"])
    assert 1 <= shown["balance"] <= 3
    text = made.explain("q")
    assert "3 lanes, spread over nodes by psp_d" in text
    assert "node 2: " in text
    assert made.report().query("q").to_json()["nodes"]["scheme"] == "psp_d"


def test_a_node_s_work_is_counted_once() -> None:
    made = engine()
    made.add_query("q", THETA, spread="psp", nodes=4)
    answers(made, range(4))
    work = spread_of(made).work
    assert sum(node.comparisons for node in work) == made.manifest.totals.comparisons
    assert sum(node.visits for node in work) == sum(spread_of(made).sent) == made.manifest.totals.hops
    assert sum(node.rows for node in work) == made.metrics()["state_rows"]


def test_others_run_beside_it_in_their_lanes() -> None:
    """Lanes are spread anew under them, and the nodes stay as they are."""
    alone, both = engine(), engine()
    for made in (alone, both):
        made.add_query("q", THETA, spread="psp", nodes=3)
    both.add_query("keyed", ONE_KEY)
    both.add_query("theta", THETA)
    for step in range(4):
        if step == 2:
            both.rescale(3)
        assert answers(alone, range(step, step + 1)) == [sorted(map(str, both.push(rows(step))["q"].to_pylist()))]
    assert spread_of(both) == spread_of(alone)
    both.drop_query("q")
    both.push(rows(4))
    assert not [lane for lane in both.manifest.lane_states if lane.group.startswith("nodes-")]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (THETA, {"spread": "pps"}, "use one of: auto, atr, ctr"),
    (THETA, {"nodes": 3}, "none is named"),
    (THETA, {"spread": "psp", "nodes": 0}, "use 1 to 1024"),
    (THETA, {"spread": "psp", "nodes": 1025}, "use 1 to 1024"),
    (THETA, {"spread": "psp", "nodes": "4"}, "the number of nodes cannot be '4'"),
    (THETA, {"spread": "atr", "spread_options": {"master": "Z"}}, "use one of: A, B, C"),
    (THETA, {"spread": "atr", "spread_options": {"segment": "5 seconds"}}, "shorter than the widest window"),
    (THETA, {"spread": "ctr", "spread_options": {"segment": "300 milliseconds"}}, "a segment of 300 ms"),
    (THETA, {"spread": "ctr", "spread_options": {"segment": "300 milliseconds"}}, "use at least"),
    (THETA, {"spread": "atr", "plan": "[A: B C | B: C A | C: A B]"}, "must visit the master first"),
    (THETA, {"spread": "ctr", "nodes": 2, "spread_options": {"copies": 3}}, "2 nodes cannot have 3 copies"),
    (THETA, {"spread": "ctr", "spread_options": {"copies": "two"}}, "the number of copies cannot be 'two'"),
    (THETA, {"spread": "psp", "spread_options": {"copies": 2}}, "psp has no option 'copies'"),
    (THETA, {"spread": "lanes"}, "use hash_hops, or psp_d"),
    (THETA, {"spread": "psp", "plan": "((A B) C)"}, "write probing orders such as"),
    (THETA, {"spread": "psp", "operator": "any:One"}, "leave out the operator or the spread"),
    ("SELECT A.x FROM A [ROWS 3], B [ROWS 2] WHERE A.x = B.x", {"spread": "psp"}, "ROWS window"),
    (
        "SELECT COUNT(*) AS n FROM A, B WHERE A.x = B.x WINDOW 20 SECONDS EVERY 5 SECONDS",
        {"spread": "psp"}, "an aggregate cannot be spread",
    ),
    ("DSTREAM(SELECT A.x FROM A, B WHERE A.x = B.x WINDOW 9 SECONDS)", {"spread": "psp"}, "DSTREAM cannot be spread"),
    (
        "RSTREAM(SELECT A.x FROM A, B WHERE A.x = B.x WINDOW 9 SECONDS EVERY 2 SECONDS)",
        {"spread": "psp"}, "RSTREAM cannot be spread",
    ),
    (
        "SELECT A.x, COUNT(*) OVER (ORDER BY A.ts) AS n FROM A, B WHERE A.x = B.x WINDOW 9 SECONDS",
        {"spread": "psp"}, "OVER cannot be spread",
    ),
    (
        "SELECT A.x FROM A, B WHERE A.x = B.x WINDOW 9 SECONDS "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY A.x ORDER BY B.y) <= 3 EVERY 10 SECONDS",
        {"spread": "psp"}, "the first rows of groups cannot be spread",
    ),
    ("SELECT A.x FROM A [RANGE 5 SECONDS] EXCEPT ON (x) B [RANGE 5 SECONDS]", {"spread": "psp"}, "an EXCEPT cannot"),
    ("SELECT A.x FROM A", {"spread": "psp"}, "no join to spread"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "asked", "said"), REFUSED)
def test_what_cannot_be_spread_is_refused_with_the_remedy(sql: str, asked: dict[str, Any], said: str) -> None:
    made = engine()
    with pytest.raises(ms.MidstreamError, match=said) as refused:
        made.add_query("q", sql, **asked)
    assert not isinstance(refused.value, ms.InternalError)
    assert refused.value.remedy
    assert not made.manifest.pending
