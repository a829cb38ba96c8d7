"""Every face shows the same of a job: engine, run and command line are made from the one report."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.checkpoint.liveness import Liveness
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint, status
from midstream.checkpoint.report import report
from midstream.cli.main import main
from midstream.model.codec import encode
from midstream.model.events import StepDone
from midstream.model.manifest import Manifest
from tests.unit.building import both, engine, table

PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: C A | C: B A]")
LASTING = ("parallel_track", "hybmig", "ghm", "jisc")


def chain_sql(seconds: int, condition: str = "") -> str:
    return f"SELECT A.j AS a FROM A, B, C WHERE A.k = B.k AND B.k = C.k {condition} WINDOW {seconds} SECONDS"


def run_status(manifest: Manifest) -> dict[str, Any]:
    """What `Run.status` gives of a job, but for its state."""
    return status(report(manifest), ())


def cli_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["status", str(folder), "--json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def published(manifest: Manifest, folder: Path) -> Path:
    """The folder of a job whose newest manifest this is."""
    ManifestLog(folder / "manifests").publish(manifest)
    return folder


def moving_chain() -> Any:
    """Two queries in one chain, which one of them took along to another plan."""
    made = engine("ABC", sharing="mem_opt", lanes=2)
    for name, seconds in (("short", 5), ("long", 20)):
        made.add_query(name, chain_sql(seconds))
    made.add_query("beside", "SELECT A.k FROM A, B WHERE A.v < B.v WINDOW 5 SECONDS")
    for at in range(8):
        made.push(both("ABC", table([at, at], j=[1, 2], k=[1, at], v=[1.0, at])))
    made.migrate("short", PLANS[1], "parallel_track", together=True)
    made.push(both("ABC", table([8, 9], j=[1, 2], k=[1, 1], v=[1.0, 2.0])))
    return made


@pytest.mark.parametrize("query", ["short", "long"])
def test_a_query_of_a_chain_under_migration_shows_as_migrating_in_every_face(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = moving_chain()
    folder = published(made.manifest, tmp_path)
    shown = made.migration(query)
    assert (shown["query"], shown["strategy"], shown["plan"]) == (query, "parallel_track", PLANS[1])
    assert 0 <= shown["progress"] < 1 and shown["phase"] and shown["old_serves"] and shown["new_serves"]
    assert shown["predicted_end"] is not None
    assert made.explain(query, format="json")["migration"] == shown
    assert run_status(made.manifest)["queries"][query]["migration"] == shown
    assert cli_status(folder, capsys)["queries"][query]["migration"] == shown
    assert main(["explain", str(folder), query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["migration"] == shown
    assert main(["explain", str(folder), query]) == 0
    assert f"migration by parallel_track to {PLANS[1]} since step 8" in capsys.readouterr().out
    assert main(["status", str(folder)]) == 0
    lines = capsys.readouterr().out.partition("migrations under way")[2].splitlines()
    (line,) = [line for line in lines if line.strip().startswith(query)]
    assert "parallel_track" in line and shown["phase"] in line


def test_a_migration_is_reported_once_with_all_the_queries_that_it_carries() -> None:
    made = moving_chain()
    found = made.report()
    (migration,) = found.migrations
    assert made.explain("long", format="json")["chain"]["migrations"] == [migration.to_json()]
    assert (migration.query, set(migration.queries), migration.begun) == ("short", {"short", "long"}, 8)
    assert found.query("short").migrations == found.query("long").migrations == (migration,)
    assert found.query("beside").migration is None


def test_status_and_metrics_agree_on_the_rows_in_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = moving_chain()
    metrics, shown = made.metrics(), cli_status(published(made.manifest, tmp_path), capsys)
    assert shown["state_rows"] == metrics["state_rows"] > 0
    for name, query in metrics["queries"].items():
        assert shown["queries"][name]["state_rows"] == query["state_rows"] > 0
        assert shown["queries"][name]["state_bytes"] == query["state_bytes"] > 0


@pytest.mark.parametrize("seed", range(8))
def test_all_faces_agree_on_every_number(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, made in enumerate(drawn_engines(seed)):
        manifest = made.manifest
        metrics, of_run = made.metrics(), run_status(manifest)
        of_job = cli_status(published(manifest, tmp_path / f"job {at}"), capsys)
        made.save(tmp_path / "engine")
        of_engine = cli_status(tmp_path / "engine", capsys)
        assert made.report() == report(manifest)
        assert json.loads(json.dumps(of_run)) == of_run, "JSON values"
        of_files = run_status(Checkpoint.open(tmp_path / "engine").manifest())
        for shown, other in ((of_job, of_run), (of_engine, of_files)):
            assert {**shown, "checkpoint": 0, "last_step": 0} == {
                **other,
                "checkpoint": 0,
                "last_step": 0,
                "savepoints": {},
                "under_way": None,  # Savepoints and engines run no step.
                "time": {},  # These manifests alone know of no clock, and nothing runs them.
                **Liveness("saved").to_json(),
            }
        assert without_bytes(of_files) == without_bytes(of_run), "chunks are larger as files"
        assert of_engine["last_step"] == encode(made.events[-1])
        assert (of_run["state_rows"], of_run["state_bytes"]) == (metrics["state_rows"], metrics["state_bytes"])
        assert of_run["counters"].items() <= metrics.items()
        assert of_run["queries"].keys() == metrics["queries"].keys()
        for name, query in of_run["queries"].items():
            sizes = {"state_rows": query["state_rows"], "state_bytes": query["state_bytes"]}
            assert {**query["counters"], **sizes} == metrics["queries"][name]
            assert query["migration"] == made.migration(name) == made.explain(name, format="json")["migration"]
            explained = made.explain(name, analyze=True, format="json")
            assert explained["counters"].items() <= query["counters"].items()
            rows = {state["id"]: state["rows"] for state in of_run["states"] if state["id"] in query["states"]}
            assert explained["states"].items() <= rows.items()
        last = next(event for event in reversed(made.events) if isinstance(event, StepDone))
        assert (of_run["step"], of_run["state_rows"]) == (last.step, last.state_rows)
        assert of_run["state_rows"] == sum(lane["rows"] for lane in of_run["by_lane"].values())
        watermarks = {name: stream["watermark"] for name, stream in of_run["streams"].items()}
        assert watermarks == last.watermarks


def without_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_bytes(v) for k, v in value.items() if k not in ("bytes", "state_bytes")}
    return [without_bytes(item) for item in value] if isinstance(value, list) else value


def drawn_engines(seed: int) -> Any:
    """One engine, after each of some steps between which commands are drawn; some are refused."""
    draw = random.Random(seed)
    made = engine("ABC", sharing=draw.choice(["auto", "mem_opt", "pull_up", "push_down", "off"]), lanes=2, lateness=1)
    made.add_query("q0", chain_sql(30))
    made.add_query("n", "SELECT COUNT(*) AS n FROM A [RANGE 3 SECONDS] EVERY 1 SECOND")
    for at in range(9):
        for _ in range(draw.randint(0, 2)):
            draw_command(draw, made, at)
        for stream in ("ABC", "AB") if at % 2 else ("ABC",):
            count = draw.randint(0, 4)
            times = sorted(at + 2 * draw.random() for _ in range(count))
            keys, values = ([draw.randint(0, 2) for _ in range(count)] for _ in range(2))
            made.push(both(stream, table(times, j=range(count), k=keys, v=values)))
        if at % 3 == 2:
            yield made


def draw_command(draw: random.Random, made: Any, at: int) -> None:
    name = draw.choice([*made.manifest.queries, "q0"])
    try:
        match draw.randint(0, 7):
            case 0 | 1:
                condition = draw.choice(["", f"AND A.v > {draw.randint(0, 1)}"])
                made.add_query(f"q{at}", chain_sql(draw.randint(10, 40), condition), draw.choice(PLANS))
            case 2 | 3 | 4 | 5:
                made.migrate(name, draw.choice(PLANS), draw.choice(LASTING), together=draw.random() < 0.7)
            case 6:
                made.rescale(draw.randint(1, 3))
            case 7 if name not in ("n", "q0"):
                made.drop_query(name)
    except ms.MidstreamError:
        pass
