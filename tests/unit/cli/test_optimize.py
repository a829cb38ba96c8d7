"""`midstream optimize`, `approve`, `reject`, `pin`, `unpin`, `plans`: on the checkpoint of an embedded engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.cli.main import main
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, query, rows, run

BAD = "((A B) C)"


class Line:
    """The command line, on one checkpoint; each command must do what it is there for."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys = str(path), capsys

    def said(self, command: str, *arguments: str) -> str:
        assert main([command, self.path, *arguments]) == 0
        return " ".join(self.capsys.readouterr().out.split())

    def json(self, command: str, *arguments: str) -> dict[str, Any]:
        found = json.loads(self.said(command, *arguments, "--json"))
        assert isinstance(found, dict)
        return found

    def refused(self, command: str, *arguments: str) -> str:
        assert main([command, self.path, *arguments]) == 2
        return " ".join(self.capsys.readouterr().err.split())


def test_a_plan_is_proposed_rejected_approved_and_pinned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, step = Line(tmp_path / "ckpt", capsys), iter(range(100))
    with ms.Engine(checkpoint=tmp_path / "ckpt") as made:
        for name in "ABC":
            made.create_stream(name, COLUMNS, timestamp="ts")
        made.add_query("q", query("ABC"), plan=BAD)
        made.push(rows(next(step), BAD_FIRST))

        assert "(optimize) is in the log" in line.said(
            "optimize", "q", "--mode", "ask", "--review", "2 seconds", "--effort", "1"
        )
        assert "the optimizer proposes no other plan" in line.refused("approve", "q")
        run(made, [next(step) for _ in range(10)])
        shown = line.json("plans", "q")
        proposed = shown["proposal"]["plan"]
        assert shown["settings"]["mode"] == "ask" and shown["settings"]["policy"] == "adaptive"
        assert shown["proposal"]["state"] == "waits" and shown["figures"]["real"] > 0
        said = line.said("plans", "q")
        assert f"proposed: {proposed}" in said and "work ms/s" in said and "ms of work and" in said

        assert line.json("reject", "q", proposed)["outcome"] == "sent"
        assert "was rejected" in line.refused("approve", "q")
        run(made, [next(step)])

        line.said("optimize", "q", "--mode", "ask", "--objective", "memory", "--review", "2 seconds")
        run(made, [next(step)])
        said = line.said("plans", "q")
        assert "would cost" in said and "work ms/s" not in said and "ms of work and" not in said

        assert line.json("pin", "q", "(A (B C))")["outcome"] == "sent"
        run(made, [next(step)])
        assert line.json("plans", "q")["pinned"] and "pinned" in line.said("plans", "q")
        assert "(unpin) is in the log" in line.said("unpin", "q")
        run(made, [next(step)])
        shown = line.json("plans", "q")
        assert not shown["pinned"] and shown["plan"] == "(A (B C))"

        line.said("optimize", "q", "--mode", "ask", "--policy", "random", "--review", "1 second", "--effort", "1")
        run(made, [next(step)])
        while (proposal := made.manifest.optimizations["q"].proposal) is None or proposal.state != "waits":
            run(made, [next(step)])
        assert "(approve) is in the log" in line.said("approve", "q", proposal.plan)
        run(made, [next(step)])
        assert line.json("plans", "q")["plan"] == proposal.plan


def test_what_another_policy_has_learned_is_not_drawn_as_a_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = Line(tmp_path / "ckpt", capsys)
    with ms.Engine(checkpoint=tmp_path / "ckpt") as made:
        for name in "ABC":
            made.create_stream(name, COLUMNS, timestamp="ts")
        made.add_query("q", query("ABC"), plan=BAD)
        made.optimize("q", policy="lambda_chart", mode="suggest", review="1 second", effort=1.0)
        run(made, range(5))
        assert made.manifest.optimizations["q"].memory
        made.optimize("q", policy="static", mode="suggest", review="1 hour")
        run(made, [5])
    assert "q has no chart" in line.refused("plans", "q", "--chart", str(tmp_path / "chart.png"))
