"""`midstream run` and `midstream demo`, whole, as processes; the one that is interrupted starts Spark by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.checkpoint.report_values import QueryReport
from midstream.demo.nexmark import generate
from midstream.sql.job_file import read_job_file
from tests.job_folder import JOB, fill
from tests.spark.forked_drivers import ForkedDrivers
from tests.unit.cli.test_process import SOURCE, midstream

NEXMARK = Path(__file__).parents[2] / "examples" / "nexmark"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path, files=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def result_keys(folder: Path) -> list[int]:
    tables = [parquet.read_table(file) for file in (folder / "out").rglob("*.parquet")]
    return sorted(key for table in tables for key in table["k"].to_pylist())


def rows_of(table: pa.Table) -> Counter[str]:
    """The rows, whatever their order, times as microseconds."""
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in table.columns]
    return Counter(map(str, zip(*(c.to_pylist() for c in columns), strict=True)))


def triples(folder: Path) -> QueryReport:
    return Checkpoint.open(folder / "ckpt").report().query("triples")


def test_a_run_that_no_rows_come_to_ends_in_order(
    tmp_path: Path, drivers: ForkedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stream = '[streams.A]\nformat = "parquet"\npath = "in"\nschema = "k BIGINT, ts TIMESTAMP"\ntimestamp = "ts"\n'
    query = '[queries.q]\nsql = "SELECT k FROM A"\nsink = { path = "out" }\n'
    Path("job.toml").write_text(f'checkpoint = "ckpt"\n{stream}{query}')
    Path("in").mkdir()
    run = ("midstream", "run", "job.toml", "--once", "--cores", "2")
    done = drivers.run(*run)
    assert done.returncode == 0 and "no step was done before the job ended" in done.stdout, done.stderr
    done = drivers.run(*run, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert (found := json.loads(done.stdout))["step"] == -1 and found["queries"] == {} and found["state"] == "stopped"
    parquet.write_table(pa.table({"k": [7], "ts": pa.array([1], pa.timestamp("us"))}), "in/a.parquet")
    assert drivers.run(*run).returncode == 0
    assert result_keys(tmp_path) == [7]


def test_a_job_file_is_run_stopped_commanded_and_run_on(folder: Path, drivers: ForkedDrivers) -> None:
    done = drivers.run("midstream", "run", "job.toml", "--once", "--cores", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["queries"]["triples"]["counters"]["rows_out"] == 10
    assert result_keys(folder) == list(range(10))
    assert midstream("migrate", "ckpt", "triples", "(A (B C))").returncode == 0

    process = subprocess.Popen(
        [sys.executable, "-m", "midstream", "run", "job.toml", "--interval", "200 milliseconds", "--cores", "2"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        late = pa.table({"k": [7], "ts": pa.array([9_000_001], pa.timestamp("us")), "v": [9.0]})
        parquet.write_table(late, folder / "in" / "A" / "2.parquet")
        deadline = time.monotonic() + 200
        while triples(folder).counters.rows_out < 11 and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=100)
    finally:
        process.kill()
    assert (process.returncode, error) == (0, "")
    assert "triples: 11 rows in" in out
    assert triples(folder).plan == "(A (B C))"
    assert result_keys(folder) == sorted([*range(10), 7])


def test_a_job_that_cannot_start_says_why_in_one_message(folder: Path, drivers: ForkedDrivers) -> None:
    (folder / "job.toml").write_text(JOB.replace("A.k = B.k", "A.k = B.z"))
    wrong = drivers.run("midstream", "run", "job.toml", "--once", "--cores", "2")
    assert wrong.returncode == 2 and "'B.z'" in wrong.stderr and wrong.stderr.count("\n") == 1


def test_a_short_demo_ends_equal(tmp_path: Path, drivers: ForkedDrivers) -> None:
    done = drivers.run("midstream", "demo", "--out", tmp_path / "demo", "--weeks", "4", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    acts = {act["act"]: act for act in report["acts"]}
    assert report["equal"] and list(acts) == [
        "late_together", "lost_in_weather", "late_in_the_heat", "near_together"
    ]  # fmt: skip
    for act in report["acts"]:
        assert act["rows"] == act["expected_rows"] > 0
        assert len(act["phases"]) == 2 and act["phases"][1]["plan"] != act["phases"][0]["plan"]
        assert act["phases"][0]["comparisons"] == act["phases"][0]["old_plan_comparisons"]
        if act["act"] != "near_together":
            assert act["phases"][1]["comparisons"] < act["phases"][1]["old_plan_comparisons"]
    near = acts["near_together"]
    assert near["phases"][1]["comparisons"] == near["phases"][1]["old_plan_comparisons"], "nodes share the same work"
    assert near["nodes"]["scheme"] == "psp_d" and len(near["nodes"]["nodes"]) == 4 and near["nodes"]["balance"] < 1.5
    decided = [review for review in acts["late_in_the_heat"]["reviews"] if review["decision"] == "switch"]
    assert [review["chosen"] for review in decided] == [acts["late_in_the_heat"]["phases"][1]["plan"]]


@pytest.mark.parametrize("text", ["STRING", "VARCHAR"])
def test_a_nexmark_job_file_answers_on_spark_as_embedded(tmp_path: Path, drivers: ForkedDrivers, text: str) -> None:
    tables = vars(generate(6_000, per_second=1_000))
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        parquet.write_table(table, tmp_path / name / "0.parquet")
    streams, query = ((NEXMARK / file).read_text() for file in ("streams.toml", "q20.toml"))
    for file, words in (("streams.toml", streams.replace("STRING", text)), ("q20.toml", query)):
        (tmp_path / file).write_text(words.replace("${NEXMARK:-nexmark}", str(tmp_path)))
    engine = ms.Engine()
    job = read_job_file(tmp_path / "q20.toml")
    for name, stream in job.streams.items():
        engine.create_stream(name, stream.schema or "", timestamp=stream.timestamp)
    ((name, one),) = job.queries.items()
    engine.add_query(name, one.sql)
    expected = rows_of(engine.push(tables)[name])
    done = drivers.run("midstream", "run", str(tmp_path / "q20.toml"), "--once", "--cores", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = [parquet.read_table(file) for file in (tmp_path / "out" / "q20" / name).rglob("*.parquet")]
    assert expected
    assert rows_of(pa.concat_tables(found)) == expected
