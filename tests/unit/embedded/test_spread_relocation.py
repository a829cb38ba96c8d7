"""Nodes come to a running query and leave it, at once or as rows run out: nothing is lost, and nothing comes twice."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.model.codec import decode, encode
from midstream.model.node_spread import NodeSpread
from midstream.ring.spreading import spreadings
from tests.unit.embedded.test_spread import ONE_KEY, PLAN, THETA, answers, chunks, engine, rows, spread_of

BOTH = ("aggressive", "passive")
RINGS = ("psp", "psp_i", "psp_d")
WINDOW_STEPS = 4
"""So many steps last longer than a window and what is late."""


def still(sql: str, steps: range) -> list[list[str]]:
    made = engine()
    made.add_query("q", sql, plan=PLAN)
    return answers(made, steps)


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("name", RINGS)
def test_nodes_join_and_leave_a_running_ring(name: str, way: str) -> None:
    made = engine()
    made.add_query("q", THETA, spread=name, nodes=3, plan=PLAN)
    found = answers(made, range(4))
    for nodes in (5, 2, 3, 7, 1, 4):
        made.spread("q", name, nodes=nodes, relocation=way)
        found += answers(made, range(len(found), len(found) + 1))
        assert spread_of(made).nodes == nodes
        assert (spread_of(made).before is None) == (way == "aggressive")
        assert len(spread_of(made).work) == spread_of(made).reach >= nodes
    found += answers(made, range(len(found), len(found) + WINDOW_STEPS))
    assert found == still(THETA, range(len(found)))
    after = spread_of(made)
    assert (after.before, after.reach, len(after.work)) == (None, 4, 4)
    assert {lane.number for lane in made.manifest.lane_states if lane.group.startswith("nodes-")} == set(range(4))
    assert sum(node.rows for node in after.work) == made.metrics()["state_rows"] or name == "psp_i"


@pytest.mark.parametrize(("first", "then"), [*permutations(spreadings(), 2)][::3])
def test_rows_of_every_way_run_out_beside_those_of_every_other(first: str, then: str) -> None:
    made = engine()
    plan = "[A: B C | B: A C | C: A B]"  # It visits A, the master, first.
    made.add_query("q", ONE_KEY, spread=first, nodes=3, plan=plan)
    found = answers(made, range(3))
    made.spread("q", then, nodes=2, relocation="passive")
    found += answers(made, range(3, 4))
    made.spread("q", first, nodes=4, relocation="passive")
    found += answers(made, range(4, 5))
    assert [one.scheme for one in spread_of(made).all] == [first, then, first]
    found += answers(made, range(5, 6 + WINDOW_STEPS))
    assert [one.scheme for one in spread_of(made).all] == [first]
    assert found == still(ONE_KEY, range(len(found)))


@pytest.mark.parametrize("way", BOTH)
def test_no_row_is_written_again_and_none_kept_twice(way: str) -> None:
    made, alone = engine(), engine()
    made.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN)
    alone.add_query("q", THETA, spread="one_lane", nodes=1, plan=PLAN)
    for one in (made, alone):
        answers(one, range(4))
    before, at = chunks(made), where(made)
    made.spread("q", "psp_d", nodes=5, relocation=way)
    made.push({})
    alone.push({})
    assert chunks(made) <= before
    assert made.metrics()["state_rows"] == alone.metrics()["state_rows"]
    new = [node.rows for node in spread_of(made).work[3:]]
    if way == "passive":
        assert new == [0, 0]
        assert {chunk: nodes for chunk, nodes in at.items() if chunk in where(made)} == where(made)
    else:
        assert min(new) > 0
    for step in range(5, 8):
        for one in (made, alone):
            one.push(rows(step))
        assert made.metrics()["state_rows"] == alone.metrics()["state_rows"]
        assert made.manifest.totals.comparisons == alone.manifest.totals.comparisons


def where(made: ms.Engine) -> dict[str, set[int]]:
    """At which nodes each chunk is listed."""
    found: dict[str, set[int]] = {}
    for lane, state in made.manifest.lane_states.items():
        for listing in state.states.values():
            for ref in listing.chunks:
                found.setdefault(ref.name, set()).add(lane.number)
    return found


def test_new_rows_go_to_the_new_nodes_first() -> None:
    made = engine()
    made.add_query("q", THETA, spread="psp_d", nodes=3)
    answers(made, range(4))
    made.spread("q", "psp_d", nodes=5, relocation="passive")
    answers(made, range(4, 6))
    ring = spread_of(made)
    assert all(slices.nodes[:2] == (3, 4) for slices in ring.slices.values())
    assert ring.before is not None
    assert (ring.before.nodes, ring.reach) == (3, 5)


@pytest.mark.parametrize("way", BOTH)
def test_changes_in_one_step_are_one(way: str) -> None:
    """No row lies as the first command says; and one that undoes a passive change leaves none to run out."""
    made = engine()
    made.add_query("q", THETA, plan=PLAN, spread="psp_d", nodes=3)
    made.spread("q", "psp_i", nodes=5, relocation=way)
    found = answers(made, range(3))
    made.spread("q", "psp_d", nodes=5, relocation="passive")
    made.spread("q", "psp", nodes=2, relocation=way)
    found += answers(made, range(3, 4))
    assert [one.scheme for one in spread_of(made).all] == (["psp", "psp_i"] if way == "passive" else ["psp"])
    made.spread("q", "off")
    found += answers(made, range(4, 6))
    assert found == still(THETA, range(6))


def test_what_runs_out_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole = engine()
    whole.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN, spread_options={"count_bound": 5})
    found, expected = [], []
    for step in range(9):
        with engine(tmp_path / "checkpoint") as made:
            made.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN, spread_options={"count_bound": 5})
            for one in (whole, made):
                if step in (2, 3):
                    one.spread("q", "psp_d", nodes=2 * step, relocation="passive", count_bound=4)
            found += answers(made, range(step, step + 1))
            expected += answers(whole, range(step, step + 1))
            kept = spread_of(made)
            assert kept == spread_of(whole)
            assert decode(NodeSpread, encode(kept)) == kept
            assert len(kept.all) == {2: 2, 3: 3, 4: 3}.get(step, len(kept.all))
    assert found == expected == still(THETA, range(9))


def test_a_slice_has_no_more_rows_than_its_bound() -> None:
    made, free = engine(), engine()
    made.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN, spread_options={"count_bound": 4})
    free.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN)
    for step in range(5):
        burst = rows(step, 60 if step == 2 else 8)
        found, expected = (sorted(map(str, one.push(burst)["q"].to_pylist())) for one in (made, free))
        assert found == expected
    assert all(slices.rows <= 8 for slices in spread_of(made).slices.values())  # Rows of equal time share a slice.
    assert len(spread_of(made).slices["A"].starts) > 10 > len(spread_of(free).slices["A"].starts)


def test_explain_and_status_show_what_runs_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = tmp_path / "checkpoint"
    with engine(checkpoint) as made:
        made.add_query("q", THETA, spread="psp", nodes=4, plan=PLAN)
        answers(made, range(3))
    assert main(["spread", str(checkpoint), "q", "psp", "--nodes", "2", "--relocation", "passive"]) == 0
    with engine(checkpoint) as made:
        made.add_query("q", THETA, spread="psp", nodes=4, plan=PLAN)
        found = answers(made, range(3, 4))
        shown = made.explain("q", format="json")["nodes"]
        assert (len(shown["nodes"]), shown["running_out"][0]["nodes"]) == (4, 4)
        assert "rows before" in made.explain("q")
        assert "run out on 4 nodes by psp" in made.explain("q")
    assert found == still(THETA, range(4))[3:]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"scheme": "psp_d", "relocation": "slow"}, "unknown relocation 'slow'", "use one of: aggressive, passive"),
    ({"scheme": "psp_d", "relocation": None}, "unknown relocation None", "use one of: aggressive, passive"),
    ({"scheme": "psp_d", "count_bound": 0}, "limited to 0 rows", "use 1 or more"),
    ({"scheme": "psp_d", "count_bound": -3}, "limited to -3 rows", "use 1 or more"),
    ({"scheme": "psp_d", "count_bound": "9"}, "limited to '9' rows", "use 1 or more"),
    ({"scheme": "psp_d", "count_bound": True}, "limited to True rows", "use 1 or more"),
    ({"scheme": "psp", "count_bound": 0.5}, "limited to 0.5 rows", "use 1 or more, or auto"),
    ({"scheme": "atr", "count_bound": 9}, "atr has no option 'count_bound'", "an option of psp and psp_d and psp_i"),
    ({"scheme": "ctr", "segment": "300 milliseconds", "relocation": "passive"}, "a segment of 300 ms", "use at least"),
    ({"scheme": "ctr", "nodes": 2, "copies": 3, "relocation": "passive"}, "2 nodes cannot have 3 copies", "use 1 to 2"),
    ({"scheme": "off", "relocation": "passive"}, "lanes cannot use the option 'relocation'", "leave out"),
    ({"scheme": "off", "nodes": 5}, "a query in lanes has no nodes", "leave the nodes out; rescale"),
    ({"scheme": "off", "nodes": "auto"}, "a query in lanes has no nodes", "leave the nodes out; rescale"),
    ({"scheme": "off", "plan": PLAN}, "one step cannot change the probing orders", "migrate"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "said", "remedy"), REFUSED)
def test_what_cannot_be_is_refused_and_the_query_runs_on(asked: dict[str, Any], said: str, remedy: str) -> None:
    made = engine()
    made.add_query("q", THETA, spread="psp_d", nodes=3, plan=PLAN)
    found = answers(made, range(2))
    before = spread_of(made)
    usual = None if asked["scheme"] == "off" else 5
    with pytest.raises(ms.MidstreamError, match=said) as refused:
        made.spread("q", **{"nodes": usual, **asked})
    assert not isinstance(refused.value, ms.InternalError)
    assert remedy in str(refused.value.remedy)
    assert (spread_of(made), made.manifest.pending) == (before, ())
    assert found + answers(made, range(2, 4)) == still(THETA, range(4))


def test_rows_in_lanes_cannot_run_out() -> None:
    made = engine()
    made.add_query("q", THETA)
    answers(made, range(2))
    with pytest.raises(ms.PlanError, match="lanes cannot use passive relocation") as refused:
        made.spread("q", "psp", nodes=3, relocation="passive")
    assert "aggressive" in str(refused.value.remedy)


def test_orders_that_what_runs_out_cannot_go_by_are_refused() -> None:
    """Rows under atr are met at the master's node: it is visited first until the last of them has run out."""
    made = engine()
    made.add_query("q", THETA, spread="atr", nodes=3, plan="[A: B C | B: A C | C: A B]")
    found = answers(made, range(2))
    with pytest.raises(ms.PlanError, match="must visit the master first"):
        made.spread("q", "psp", 3, plan="[A: B C | B: C A | C: A B]", relocation="passive")
    made.spread("q", "psp", 3, relocation="passive")
    found += answers(made, range(2, 3))
    with pytest.raises(ms.PlanError, match="must visit the master first"):
        made.migrate("q", "[A: B C | B: C A | C: A B]")
    found += answers(made, range(3, 4 + WINDOW_STEPS))
    made.migrate("q", "[A: B C | B: C A | C: A B]")
    found += answers(made, range(len(found), len(found) + 1))
    assert found == still(THETA, range(len(found)))


def test_nodes_that_the_cost_model_adds_come_by_the_equation() -> None:
    """The ring of each source is as it is where a user adds as many."""
    from midstream.ring.lengthening import _over

    asked, chosen = engine(), engine()
    for one, nodes in ((asked, 4), (chosen, "auto")):
        one.add_query("q", THETA, spread="psp_d", nodes=nodes, plan=PLAN)
        answers(one, range(4))
    found = _over(chosen.manifest, "q", dict.fromkeys(spread_of(chosen).routes, 6))
    asked.spread("q", "psp_d", nodes=6)
    asked.push({})
    assert dict(found.rings) == dict(spread_of(asked).rings) != {}
    assert found.auto
