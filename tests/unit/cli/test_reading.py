"""`status` and `explain` read a checkpoint without a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.rescale import Rescale
from midstream.model.codec import encode
from midstream.model.events import QueryAdded, QueryChanged
from tests.unit.cli.conftest import ROWS, SQL, SmallJob


def test_status_shows_where_the_job_stands(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(job.path)]) == 0
    shown = capsys.readouterr().out
    assert "step 0, 2 lanes, sharing auto" in shown
    assert "all rows" in shown
    assert "((A B) C)" in shown and "pairs" in shown
    assert "1970-01-01 00:00:00.000002" in shown
    assert "migrations under way" not in shown and "commands not taken" not in shown


def test_status_as_json_is_exact(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    job.commands.append(Rescale(3))
    assert main(["status", str(job.path), "--events", "2", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["step"], report["lanes"], report["sharing"]) == (0, 2, "auto")
    assert {name: stream["rows"] for name, stream in report["streams"].items()} == {"A": 3, "B": 3, "C": 3}
    assert report["streams"]["A"]["watermark"] == 2 - 1_000_000
    query = report["queries"]["pairs"]
    assert query | dict.fromkeys(("counters", "state_bytes", "states"), 0) == {
        "name": "pairs", "plan": "((A B) C)", "since": 0, "joined": 0, "sees": "all", "exact_from": None, "sink": {},
        "from_step": 0, "part_of": [],
        "sql": SQL, "lanes": 2, "spread": "by the common key", "operator": None, "chain": "pairs", "migration": None,
        "counters": 0, "state_rows": 12, "state_bytes": 0, "states": 0, "nodes": None, "nodes_with": [], "rejected": 0,
        "optimizer": {
            "mode": "suggest", "policy": "adaptive", "pinned": False, "decision": "", "reason": "", "reviewed_in": 0,
            "proposal": None,
            "foreseen": None, "real": None,
        },
    }  # fmt: skip
    assert query["state_rows"] == report["state_rows"] and query["state_bytes"] == report["state_bytes"] > 0
    assert query["counters"] == vars(job.manifest.queries["pairs"].counters) and query["counters"]["rows_out"] == 3
    assert report["lane_review"] == {
        "lanes": 2, "mode": "suggest", "decision": "", "reason": "", "proposal": None, "took": None, "interval": None,
    }  # fmt: skip
    assert report["waiting_commands"] == [{"id": 1, "command": "rescale", "lanes": 3}]
    assert [e["event"] for e in report["events"]] == ["query_added", "step_done"]


def test_events_come_in_order_and_are_the_last(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(11):
        job.step(ROWS.slice(0, 0))
    assert main(["status", str(job.path), "--events", "3", "--json"]) == 0
    assert [e["step"] for e in json.loads(capsys.readouterr().out)["events"]] == [9, 10, 11]


def test_events_say_in_words_what_a_query_sees(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    events = (
        QueryAdded(0, "two", "(A B)", sees="new", exact_from=20_000_000),
        QueryChanged(0, "pairs", "SELECT 1", sees=5_000_000, exact_from=25_000_000),
    )
    lines = "".join(json.dumps(encode(event)) + "\n" for event in events)
    (job.path / "events" / "000000000000.jsonl").write_text(lines)
    assert main(["status", str(job.path), "--events", "2"]) == 0
    shown = capsys.readouterr().out
    assert "query two starts with plan (A B) and sees rows from step 0 on, exact from 1970-01-01 00:00:20" in shown
    assert "and sees new rows and those from 1970-01-01 00:00:05 on, exact from 1970-01-01 00:00:25" in shown
    assert main(["status", str(job.path), "--events", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == [encode(event) for event in events]


def test_explain_shows_the_operators(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(job.path), "pairs", "--verbose"]) == 0
    plain = capsys.readouterr().out
    assert main(["explain", str(job.path), "pairs", "--analyze"]) == 0
    analyzed = capsys.readouterr().out
    assert "plan  ((A B) C)" in plain and "comparisons" not in plain and "comparisons" in analyzed


def test_explain_is_a_tree_with_rows_kept_rows_and_work(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(job.path), "pairs"]) == 0
    about, _, table = capsys.readouterr().out.partition("\n\n")
    assert about.startswith("query pairs, after step ") and "plan     ((A B) C)" in about and "SELECT" in about
    head, root, left, a, b, c = table.splitlines()
    assert head.split() == ["rows", "in", "rows", "out", "rows", "kept", "work"]
    assert root.startswith("join on ") and left.startswith("├─ join on ")
    assert [line.split(",")[0].split()[-1] for line in (a, b, c)] == ["A", "B", "C"]
    assert "the last 20 s" in a and "window_join" not in table and "hash" not in table
    shares = [line.split()[-1] for line in (root, left) if line.endswith("%")]
    assert sum(int(share.rstrip("%")) for share in shares) == 100


def test_explain_says_which_stream_an_alias_is(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    job.commands.append(AddQuery("short", "SELECT b.k FROM A, B b WHERE A.k = b.k WINDOW 9 SECONDS", "(A b)"))
    job.step()
    assert main(["explain", str(job.path), "short"]) == 0
    assert "\naliases  b is B\n" in capsys.readouterr().out
    assert main(["explain", str(job.path), "pairs"]) == 0
    assert "aliases" not in capsys.readouterr().out


def test_explain_plainly_names_queries_that_share(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    job.commands.append(AddQuery("wide", SQL.replace("20 SECONDS", "30 SECONDS"), "((A B) C)"))
    job.step()
    assert main(["explain", str(job.path), "wide"]) == 0
    shown = capsys.readouterr().out
    assert "shared with pairs" in shown and "slice" not in shown


def test_status_has_a_line_for_each_chain(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seconds in (("wide", 30), ("wider", 40)):
        job.commands.append(AddQuery(name, SQL.replace("20 SECONDS", f"{seconds} SECONDS"), "((A B) C)"))
    job.step(ROWS.slice(0, 0))
    assert main(["status", str(job.path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (chain,) = report["chains"].values()
    assert chain | {"state_rows": 0, "state_bytes": 0} == {
        "name": "pairs", "plan": "((A B) C)", "queries": ["pairs", "wide", "wider"], "slices": 3,
        "cuts": [20_000_000, 30_000_000, 40_000_000], "rows": {label: [3, 0, 0] for label in "ABC"}, "state_rows": 0,
        "state_bytes": 0,
    }  # fmt: skip
    assert 0 < chain["state_rows"] == report["state_rows"]
    assert main(["status", str(job.path)]) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    at = next(i for i, line in enumerate(shown) if line.startswith("chains: queries that share one join"))
    assert shown[at + 1].split() == ["chain", "plan", "queries", "parts", "by", "age", "of", "rows", "rows", "kept"]
    assert shown[at + 3].split() == ["pairs", "((A", "B)", "C)", "3", "3", str(chain["state_rows"])]


def test_explain_draws_the_chain(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(job.path), "pairs", "--verbose"]) == 0
    assert "chain" not in capsys.readouterr().out, "a query alone"
    job.commands.append(AddQuery("wide", SQL.replace("20 SECONDS", "30 SECONDS"), "((A B) C)"))
    job.step()
    assert main(["explain", str(job.path), "wide", "--analyze"]) == 0
    shown = capsys.readouterr().out
    assert "chain pairs  auto, 2 queries, 2 windows, 2 slices, plan ((A B) C)" in shown
    assert "slice 1  [0 s, 20 s]  read by pairs, wide" in shown
    assert "slice 2  (20 s, 30 s]  read by wide" in shown
    assert "sees  " in shown and "comparisons" in shown.partition("slice 1")[2]
    assert main(["explain", str(job.path), "wide", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chain"]["chain"] == "pairs"


def test_explain_as_json(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(job.path), "pairs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"] == "((A B) C)"


@pytest.mark.parametrize("command", ["status", "explain"])
def test_a_folder_without_a_checkpoint_is_wrong_use(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [command, str(tmp_path)] + (["q"] if command == "explain" else [])
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("midstream: there is no checkpoint here") and "Remedy:" in error and str(tmp_path) in error
    assert main([command, str(tmp_path / "nowhere"), *arguments[2:]]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_a_job_before_its_first_step_fails_readably(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifests").mkdir()
    assert main(["status", str(tmp_path)]) == 1
    assert "has not finished a step yet" in capsys.readouterr().err


def test_an_unknown_query_names_the_known_ones(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(job.path), "pears"]) == 2
    assert "use one of: pairs" in capsys.readouterr().err


def test_a_damaged_manifest_fails_and_names_the_file(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (job.path / "manifests").glob("*.json")
    file.write_bytes(file.read_bytes()[:-20])
    assert main(["status", str(job.path)]) == 1
    error = capsys.readouterr().err
    assert file.name in error and "Remedy:" in error and "Traceback" not in error
