"""`status` and `explain` read the checkpoint of a job that earlier code ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midstream.cli.main import main
from tests.checkpoints.kept import Kept, unpack


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return unpack("spark", tmp_path)


def test_status_shows_what_is_under_way_and_what_waits(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(kept.checkpoint), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["step"], report["lanes"], report["sharing"]) == (4, 2, "auto")
    assert list(report["queries"]) == [
        "whole", "narrow", "filtered", "leaves", "stays", "alone", "counts", "except", "numbered", "comes",
    ]  # fmt: skip
    under_way = {name for name, query in report["queries"].items() if query["migration"] is not None}
    assert {query for one in report["migrations"] for query in one["queries"]} == under_way
    assert under_way >= set(kept.notes["under way"])
    assert [waiting["command"] for waiting in report["waiting_commands"]] == ["migrate", "add_query"]
    assert sum(stream["late"] for stream in report["streams"].values()) > 0
    assert sum(stream["rejected"] for stream in report["streams"].values()) > 0
    assert main(["status", str(kept.checkpoint)]) == 0
    shown = capsys.readouterr().out
    assert "hybmig" in shown and "parallel_track" in shown and "(A (B C))" in shown


@pytest.mark.parametrize("query", ["whole", "narrow", "leaves", "stays", "alone", "counts", "except", "numbered"])
def test_explain_draws_every_query(kept: Kept, query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(kept.checkpoint), query, "--analyze"]) == 0
    assert query in capsys.readouterr().out
    assert main(["explain", str(kept.checkpoint), query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["query"] == query
