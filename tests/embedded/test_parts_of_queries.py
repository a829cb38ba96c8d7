"""Queries that run as parts of a user's query have no results of their own, and are shown folded under it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.cli.main import app

JOB = """
checkpoint = "ckpt"
[streams.A]
format = "json"
path = "A"
schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
timestamp = "ts"
[streams.B]
format = "json"
path = "B"
schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
timestamp = "ts"
[queries.o]
sql = '''SELECT A.k, s.n FROM A [RANGE 9 SECONDS],
(SELECT B.k, COUNT(*) AS n FROM B GROUP BY B.k, TUMBLE(ts, INTERVAL 1 SECOND)) AS s [RANGE 9 SECONDS]
WHERE A.k = s.k'''
sink = { format = "parquet", path = "out/o" }
[queries.plain]
sql = "SELECT A.k FROM A"
sink = { format = "parquet", path = "out/plain" }
"""


def write(root: Path) -> None:
    root.mkdir(exist_ok=True)
    (root / "job.toml").write_text(JOB)
    for name in "AB":
        (root / name).mkdir()
        found = [{"k": 1, "v": n, "ts": f"2024-01-01T00:00:{n:02d}"} for n in range(6)]
        (root / name / "0.json").write_text("".join(json.dumps(row) + "\n" for row in found))


def tell(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def check_parts(root: Path, ran: str) -> None:
    """Look at a checkpoint, and at what `midstream run` said."""
    path = str(root / "ckpt")
    report: dict[str, Any] = json.loads(tell("status", path, "--json"))
    (part,) = (name for name, one in report["queries"].items() if one["part_of"])
    assert report["queries"][part]["part_of"] == ["o"] and report["queries"][part]["counters"]["rows_out"] > 0
    assert report["queries"]["o"]["part_of"] == [] and report["queries"]["o"]["counters"]["rows_out"] > 0
    assert not (root / "ckpt" / "results" / part).exists()
    shown = tell("status", path)
    assert "o (with 1 part)" in shown and not any(line.strip().startswith(part) for line in shown.splitlines())
    assert part not in ran
    failed = CliRunner().invoke(app, ["explain", path, "none"])
    assert "use one of: o, plain" in str(failed.exception) and part not in str(failed.exception)
    failed = CliRunner().invoke(app, ["plans", path, "none"])
    assert "use one of: o, plain" in str(failed.exception)
    failed = CliRunner().invoke(app, ["drop", path, "none"])
    assert "use one of: o, plain" in str(failed.exception)
    assert part in tell("explain", path, part)


def test_a_part_is_folded_under_its_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    check_parts(tmp_path, tell("run", "job.toml", "--engine", "embedded", "--once"))
    # The next start has nothing to put in place, or to look for, either.
    (tmp_path / "A" / "1.json").write_text('{"k": 1, "v": 9, "ts": "2024-01-01T00:00:09"}\n')
    check_parts(tmp_path, tell("run", "job.toml", "--engine", "embedded", "--once"))


def test_the_dashboard_lists_it_with_its_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from midstream.checkpoint.reader import Checkpoint
    from midstream.dashboard.api import Api

    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    tell("run", "job.toml", "--engine", "embedded", "--once")
    api = Api([Checkpoint.open(tmp_path / "ckpt")])
    assert api.overview(0, {})["queries"] == ["o", "plain"]
    view = api.view(0, "queries", {})
    assert view["all"] == 2
    (part,) = next(one["parts"] for one in view["queries"] if one["name"] == "o")
    assert api.view(0, "plan", {"query": part})["query"] == part
    assert api.view(0, "plan", {})["query"] == "o"


def test_an_engine_in_memory_reports_it_too() -> None:
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query(
        "o",
        "SELECT A.k, s.n FROM A [RANGE 9 SECONDS], (SELECT B.k, COUNT(*) AS n FROM B GROUP BY B.k, "
        "TUMBLE(ts, INTERVAL 1 SECOND)) AS s [RANGE 9 SECONDS] WHERE A.k = s.k",
    )
    found = engine.push({"A": pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us"))})})
    assert found.keys() == {"o"}
    assert [query.name for query in engine.report().asked] == ["o"]
    assert [query.part_of for query in engine.report().parts("o")] == [("o",)]
    metrics = engine.metrics_text()
    assert set(re.findall(r'(?:query|stream)="([^"]+)"', metrics)) == {"o", "A", "B"}
    assert "midstream_queries 1\n" in metrics
