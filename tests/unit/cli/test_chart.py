"""`midstream plans CKPT q --chart out.png`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.cli.main import main

DDL = "k BIGINT, ts TIMESTAMP"


def ran(checkpoint: Path, policy: str) -> Path:
    """A checkpoint whose query a policy looked after for some steps; C's rows are many."""
    with ms.Engine(checkpoint=checkpoint) as engine:
        for name in "ABC":
            engine.create_stream(name, DDL, timestamp="ts")
        engine.add_query(
            "q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS", plan="((A C) B)"
        )
        engine.optimize("q", policy=policy, mode="auto", review="1 second", effort=1.0)
        random = np.random.default_rng(1)
        for second in range(8):
            engine.push({name: rows(random, second, 60 if name == "C" else 10) for name in "ABC"})
    return checkpoint


def rows(random: np.random.Generator, second: int, count: int) -> pa.Table:
    times = np.sort(random.integers(second * 10**6, (second + 1) * 10**6, count))
    return pa.table({"k": random.integers(0, 20, count), "ts": pa.array(times, pa.timestamp("us"))})


@pytest.mark.parametrize("policy", ["lambda_chart", "sel_lambda_chart"])
def test_the_charts_of_a_query_are_drawn(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = ran(tmp_path / "ckpt", policy)
    assert main(["plans", str(checkpoint), "q", "--chart", str(tmp_path / "of/chart.png")]) == 0
    assert (tmp_path / "of/chart.png").read_bytes().startswith(b"\x89PNG")
    assert "region" in capsys.readouterr().out


def test_a_query_without_a_chart_names_the_policies_that_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = ran(tmp_path / "ckpt", "static")
    assert main(["plans", str(checkpoint), "q", "--chart", str(tmp_path / "chart.png")]) == 2
    assert "lambda_chart" in capsys.readouterr().err
    assert not (tmp_path / "chart.png").exists()
