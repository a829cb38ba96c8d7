"""What a job file says of the optimizer, and what becomes of it when the job is opened again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.commands.optimize import Optimize
from midstream.embedded.job_run import FileJob
from midstream.model.manifest import Manifest
from midstream.model.optimization import OptimizerSettings
from midstream.proposals.plan_group import settings_of
from midstream.proposals.settings import declared_optimizer
from midstream.sql.job_file import parse_job

JOB = """
checkpoint = "{root}/ckpt"
[streams.A]
format = "parquet"
path = "{root}/in"
timestamp = "ts"
[queries.q]
sql = "SELECT x.k FROM A x, A y, A z WHERE x.k = y.k AND y.k = z.k WINDOW 5 SECONDS"
sink = {{ format = "parquet", path = "{root}/out" }}
"""
FIRST = (
    '[optimizer]\nmode = "ask"\nreview = "1 minute"\n[queries.q.optimizer]\nmode = "suggest"\noptions = { reviews = 3 }'
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    rows = pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "in" / "1.parquet")
    return tmp_path


def opened(root: Path, more: str, *commands: Optimize) -> Manifest:
    with FileJob(parse_job(JOB.format(root=root) + more)) as job:
        for command in commands:
            job.engine._command(command)
        job.step()
        return job.engine.manifest


def test_it_counts_until_a_command_says_otherwise(root: Path) -> None:
    found = opened(root, FIRST)
    assert (found.optimizer.mode, found.optimizer.review) == ("ask", 60_000_000)
    assert settings_of(found, "q").mode == "suggest" and settings_of(found, "q").options == {"reviews": 3}
    off = Optimize("q", OptimizerSettings(mode="off"))
    assert opened(root, FIRST, off) and settings_of(opened(root, FIRST), "q").mode == "off"
    assert settings_of(opened(root, FIRST.replace('"suggest"', '"ask"')), "q").mode == "ask"


def test_a_table_without_a_mode_takes_that_of_the_job() -> None:
    file = parse_job(JOB.format(root="x") + "[optimizer]")
    assert declared_optimizer(file)[""].mode == "suggest" and "q" not in declared_optimizer(file)
    own = parse_job(JOB.format(root="x") + '[optimizer]\nmode = "ask"\n[queries.q.optimizer]\nreview = "1 minute"')
    assert declared_optimizer(own)["q"].mode == "ask"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[optimizer]\nmode = "never"', r"unknown mode 'never' \(at \[optimizer\]\)"),
        ("[queries.q.optimizer]\npace = 3", r"unknown setting 'pace' \(at \[queries.q.optimizer\]\)"),
        ("optimizer = 3", "optimizer is 3"),
        (
            '[optimizer]\npolicy = "lambda_chart"\noptions = { cost = "oms" }',
            r"option of lambda_chart 'cost' cannot be 'oms' \(at \[optimizer\]\).*use one of: own, om",
        ),
    ],
)
def test_what_cannot_be_names_its_place(text: str, message: str) -> None:
    job = JOB.format(root="x")
    with pytest.raises(ms.MidstreamError, match=message):
        declared_optimizer(parse_job(text + job if text.startswith("opt") else job + text))
