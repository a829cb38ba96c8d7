"""How many nodes a query is spread over where its user leaves that to the cost model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.counters import Counters
from midstream.model.events import QuerySpread
from midstream.ring.cost import RingLoad
from midstream.step.spreading.length import MEASURED, STEPS_BETWEEN, load_of
from tests.unit.building import SECOND

SQL = "SELECT A.x AS a, B.x AS b FROM A, B WHERE A.x * B.x > 60 WINDOW 20 SECONDS"


def engine() -> ms.Engine:
    made = ms.Engine(seed=3)
    for name in "AB":
        made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
    return made


def rows(step: int, count: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(step)
    ts = pa.array(np.sort(rng.integers(8 * step, 8 * step + 8, count)) * SECOND, pa.timestamp("us"))
    return {name: pa.table({"x": rng.integers(0, 9, count), "ts": ts}) for name in "AB"}


def driven(made: ms.Engine, counts: list[int]) -> list[list[str]]:
    return [sorted(map(str, made.push(rows(n, count))["q"].to_pylist())) for n, count in enumerate(counts)]


def nodes(made: ms.Engine) -> int:
    spread = made.manifest.queries["q"].nodes
    assert spread is not None
    return spread.nodes


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
    with pytest.raises(ms.PlanError, match="an objective says how many nodes are best, and 3 are named"):
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


def test_the_load_is_the_one_that_was_counted() -> None:
    for ways, length, selectivity in ((2, 70.0, 0.3), (3, 50.0, 0.1), (5, 8.0, 0.4)):
        true = RingLoad.alike(ways, length, selectivity)
        counted = Counters(
            rows_in=1_000_000,
            comparisons=round(1e6 * true.compared),
            rows_out=round(1e6 * true.compared * selectivity),
        )
        found = load_of(ways, counted)
        assert found.steps[0].rows == pytest.approx(length, rel=1e-3)
        assert found.compared == pytest.approx(true.compared, rel=1e-3)


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
