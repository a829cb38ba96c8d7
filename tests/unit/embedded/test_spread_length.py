"""How many nodes a query is spread over where its user leaves that to the cost model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import QuerySpread
from midstream.model.node_spread import NodeSpread
from midstream.ring import lengthening
from midstream.ring.cost import RingCosts
from midstream.ring.lengthening import MEASURED, STEPS_BETWEEN, route_load
from tests.unit.building import SECOND

SQL = "SELECT A.x AS a, B.x AS b FROM A, B WHERE A.x * B.x > 60 WINDOW 20 SECONDS"

THREE = "SELECT A.x AS a, B.x AS b FROM A, B, C WHERE A.x - B.x BETWEEN 0 AND 0 AND C.x * B.x > 63 WINDOW 20 SECONDS"


def engine() -> ms.Engine:
    made = ms.Engine(seed=3)
    for name in "AB":
        made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
    return made


def rows(step: int, count: int, names: str = "AB") -> dict[str, pa.Table]:
    rng = np.random.default_rng(step)
    ts = pa.array(np.sort(rng.integers(8 * step, 8 * step + 8, count)) * SECOND, pa.timestamp("us"))
    return {name: pa.table({"x": rng.integers(0, 9, count), "ts": ts}) for name in names}


def three(
    scheme: str | None, nodes: int | str | None = None, plan: str | None = None, sharing: str = "auto"
) -> ms.Engine:
    made = ms.Engine(seed=3, sharing=sharing)
    for name in "ABC":
        made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", THREE, plan=plan, spread=scheme, nodes=nodes)
    return made


def spread_of(made: ms.Engine) -> NodeSpread:
    spread = made.manifest.queries["q"].nodes
    assert spread is not None
    return spread


def driven(made: ms.Engine, counts: list[int]) -> list[list[str]]:
    return [sorted(map(str, made.push(rows(n, count))["q"].to_pylist())) for n, count in enumerate(counts)]


def nodes(made: ms.Engine) -> int:
    return spread_of(made).nodes


@pytest.mark.parametrize("scheme", ["psp_d", "psp", "ctr"])
def test_a_query_with_little_to_do_gets_one_node_and_one_with_much_more(scheme: str) -> None:
    """Few rows never make up for what a node costs a step; the answers are those of a query in lanes."""
    found = {}
    for rate in (2, 800):
        made, plain = engine(), engine()
        made.add_query("q", SQL, spread=scheme, nodes="auto")
        plain.add_query("q", SQL)
        counts = [rate] * (STEPS_BETWEEN + 3)
        assert driven(made, counts) == driven(plain, counts)
        found[rate] = nodes(made)
        told = [event.nodes for event in made.events if isinstance(event, QuerySpread)]
        assert told[-1:] == ([] if found[rate] == 4 else [found[rate]])
    assert found[2] == 1 < found[800]


def test_for_the_output_rate_there_are_more_nodes_than_for_soon_results() -> None:
    """§13.2.1: the rate grows with every node, whatever a round of the network takes."""
    found = {}
    for objective in ("latency", "rate"):
        made, plain = engine(), engine()
        made.add_query("q", SQL, spread="psp_d", nodes="auto", spread_options={"objective": objective})
        plain.add_query("q", SQL)
        counts = [2] * (STEPS_BETWEEN + 3)
        assert driven(made, counts) == driven(plain, counts)
        found[objective] = nodes(made)
    assert found["latency"] == 1 and found["rate"] >= 4
    with pytest.raises(ms.PlanError, match="an objective needs nodes = 'auto', but the query has 3 nodes"):
        made.spread("q", "psp_d", nodes=3, objective="rate")
    with pytest.raises(ms.PlanError, match=r"unknown objective 'most'.*use one of: latency, rate"):
        made.spread("q", "psp_d", nodes="auto", objective="most")


def test_a_number_that_a_user_names_stays() -> None:
    made = engine()
    made.add_query("q", SQL, spread="psp_d", nodes=3)
    driven(made, [2] * (STEPS_BETWEEN + 3))
    assert nodes(made) == 3
    made.spread("q", "psp", nodes="auto")
    made.push(rows(STEPS_BETWEEN + 4, 2))
    assert nodes(made) == 4
    with pytest.raises(ms.PlanError, match="use 1 to 1024, or auto"):
        made.spread("q", "psp", nodes="many")


@pytest.mark.parametrize("scheme", ["psp", "psp_i", "psp_d", "one_lane", "hash_hops"])
def test_each_stream_s_rows_are_counted_along_their_order(scheme: str) -> None:
    """By hop: what is compared at all nodes and matches there is what the next hop begins with (Eq. 13.1)."""
    made = three(scheme, nodes=3, plan="[A: B C | B: A C | C: A B]")
    results = sum(made.push(rows(step, 30, "ABC"))["q"].num_rows for step in range(6))
    found, sent = spread_of(made).routes, spread_of(made).work
    assert {label: one.order for label, one in found.items()} == {"A": ("B", "C"), "B": ("A", "C"), "C": ("A", "B")}
    assert all(one.rows == 6 * 30 for one in found.values())
    assert sum(sum(one.comparisons) for one in found.values()) == sum(node.comparisons for node in sent) > 1_000
    assert sum(one.matches[-1] for one in found.values()) == results > 0
    load = route_load("A", found["A"], steps=6)
    assert load.rows == 30 and load.load.partials == [1.0, found["A"].matches[0] / 180]
    made.migrate("q", "[A: C B | B: A C | C: A B]")
    made.push(rows(7, 30, "ABC"))
    found = spread_of(made).routes
    assert (found["A"].order, found["A"].rows, found["B"].rows) == (("C", "B"), 30, 210), "another order: anew"


def test_a_stream_with_few_rows_has_a_ring_of_its_own_length() -> None:
    """§13.3: A's rows are few, and what B and C do with theirs takes more nodes; answers are those of a lane."""
    for scheme in ("psp", "psp_d"):
        made, plain = three(scheme, nodes="auto"), three(None)
        for step in range(STEPS_BETWEEN + 4):
            given = {**rows(step, 400, "BC"), **rows(step, 2, "A")}
            found, expected = (sorted(map(str, one.push(given)["q"].to_pylist())) for one in (made, plain))
            assert found == expected
        spread = spread_of(made)
        lengths = {label: len(spread.ring(label)) for label in "ABC"}
        assert lengths["A"] < min(lengths["B"], lengths["C"]), lengths
        shown = made.explain("q", format="json")["nodes"]
        assert shown["foreseen"]["lengths"] == lengths and sum("A" in one["slices"] for one in shown["nodes"]) <= 2


@pytest.mark.parametrize("scheme", ["psp", "psp_d"])
def test_each_stream_of_a_ring_that_queries_share_has_its_own_length(scheme: str) -> None:
    """§13.3 in a shared ring; a query that comes later finds the lengths, and answers are those of lanes."""
    made, plain = three(scheme, nodes="auto"), three(None, sharing="off")
    others = {"near": THREE.replace("20 SECONDS", "6 SECONDS"), "high": f"{THREE[:-18]} AND A.x > 4 WINDOW 16 SECONDS"}

    def joined(name: str) -> None:
        made.add_query(name, others[name], spread=scheme, nodes="auto")
        plain.add_query(name, others[name])

    joined("near")
    for step in range(STEPS_BETWEEN + 4):
        if step == STEPS_BETWEEN + 2:
            before = {label: len(spread_of(made).ring(label)) for label in "ABC"}
            joined("high")
        given = {**rows(step, 400, "BC"), **rows(step, 2, "A")}
        found, expected = (one.push(given) for one in (made, plain))
        assert {name: sorted(map(str, found[name].to_pylist())) for name in found} == {
            name: sorted(map(str, table.to_pylist())) for name, table in expected.items()
        }
    assert len({entry.group for entry in made.manifest.queries.values()}) == 1, "they share the ring"
    lengths = {label: len(spread_of(made).ring(label)) for label in "ABC"}
    assert lengths == before and lengths["A"] < min(lengths["B"], lengths["C"]), lengths
    shown = made.explain("near", format="json")["nodes"]
    assert shown["foreseen"]["lengths"] == lengths and sum("A" in one["slices"] for one in shown["nodes"]) <= 2


@pytest.mark.parametrize("scheme", ["psp", "psp_i", "psp_d"])
def test_a_shared_ring_of_unequal_lengths_is_cut_by_load(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """§13.3 with §21.3: the narrow query has nearly all the work, and the wide one's nodes get a share of it."""
    monkeypatch.setattr(lengthening, "STEPS_BETWEEN", 4)
    monkeypatch.setattr(lengthening, "MEASURED", RingCosts(join=1e-6, send=1e-6, hop=1e-3))
    made, plain = three(scheme, nodes="auto"), three(None, sharing="off")
    near = THREE.replace("20 SECONDS", "60 SECONDS").replace(" WINDOW", " AND B.x > 7 AND C.x > 7 WINDOW")
    made.add_query("wide", near, spread=scheme, nodes="auto")
    plain.add_query("wide", near)
    for step in range(28):
        given = {**rows(step, 90, "BC"), **rows(step, 2, "A")}
        found, expected = (one.push(given) for one in (made, plain))
        assert {name: sorted(map(str, table.to_pylist())) for name, table in found.items()} == {
            name: sorted(map(str, table.to_pylist())) for name, table in expected.items()
        }
    spread = spread_of(made)
    lengths = {label: len(spread.ring(label)) for label in "ABC"}
    assert lengths["A"] < min(lengths["B"], lengths["C"]), lengths
    assert spread.pieces > 1 if scheme == "psp_d" else spread.cuts and spread.cuts[0] < 1 / spread.nodes


def test_a_command_is_checked_on_the_spread_that_its_step_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on the one that the step makes after it: while rows go over passively, orders must suit the former spread."""
    monkeypatch.setattr(lengthening, "STEPS_BETWEEN", 2)
    made = three("atr", nodes="auto")
    made.push(rows(0, 2, "ABC"))
    made.spread("q", "psp", "auto", relocation="passive")
    for step in (1, 2):
        made.push(rows(step, 2, "ABC"))
    assert spread_of(made).before is not None
    with pytest.raises(ms.PlanError, match="must visit the master first"):
        made.migrate("q", "[A: C B | B: A C | C: B A]")
    made.push(rows(3, 2, "ABC"))
    assert spread_of(made).since == 3 and spread_of(made).nodes == 1, "fewer nodes, by what was counted"


def test_the_command_line_says_auto(tmp_path: Path) -> None:
    from midstream.cli.main import main

    made = ms.Engine(seed=3, checkpoint=tmp_path / "checkpoint")
    with made:
        for name in "AB":
            made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
        made.add_query("q", SQL)
        made.push(rows(0, 2))
    assert main(["spread", str(tmp_path / "checkpoint"), "q", "psp_d", "--nodes", "auto"]) == 0
    assert main(["spread", str(tmp_path / "checkpoint"), "q", "psp_d", "--nodes", "many"]) == 2


def test_what_the_model_foresees_is_shown_and_is_what_auto_goes_by() -> None:
    """By what a row has done since there were nodes; before there is anything to go by, nothing is foreseen."""
    made, late = engine(), engine()
    made.add_query("q", SQL, spread="psp_d", nodes=2)
    late.add_query("q", SQL)
    made.push({})
    assert made.explain("q", format="json")["nodes"]["foreseen"] is None
    driven(made, [60] * 4)
    found = made.explain("q", format="json")["nodes"]["foreseen"]
    assert found["nodes"] == 2 and 0 < found["best_seconds"] <= found["seconds"]
    assert "foreseen: results" in made.explain("q")
    assert found["seconds"] >= MEASURED.hop / 2, "a step waits for its nodes, however few its rows are"
    driven(late, [0] * 40)
    late.spread("q", "psp_d", nodes=2)
    for step in range(4):
        late.push(rows(step + 100, 60))
    later = late.explain("q", format="json")["nodes"]["foreseen"]
    assert later["seconds"] == pytest.approx(found["seconds"], rel=0.3), "steps without nodes count for nothing"


def test_bytes_are_those_of_the_partial_results_that_visit() -> None:
    """Each row visits the node of its key: a moment and its event time, eight bytes each, and its name."""
    made = ms.Engine()
    for stream in "AB":
        made.create_stream(stream, "name TEXT, ts TIMESTAMP", timestamp="ts")
    sql = "SELECT A.name AS name FROM A, B WHERE A.name = B.name WINDOW 20 SECONDS"
    made.add_query("q", sql, spread="hash_hops", nodes=3)
    names = ["a", "bcd", "bcd", "Ährenfeld"]
    times = pa.array([second * SECOND for second in range(len(names))], pa.timestamp("us"))
    made.push({stream: pa.table({"name": names, "ts": times}) for stream in "AB"})
    found = made.explain("q", format="json")["nodes"]
    assert found["sent"] == [8] and found["bytes"] == [2 * sum(16 + len(name.encode()) for name in names)]
    assert f"visits by hop: 8 ({found['bytes'][0]} B)" in made.explain("q")
