"""Late and unreadable rows are never silent: `midstream run` says so, and a Python program is warned."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.checkpoint.folders import DEAD_LETTERS, LATE
from midstream.cli.main import app
from midstream.pipeline.lost_rows import LostRows, LostRowsWatch
from tests.unit.cli.conftest import first_manifest

JOB = """
checkpoint = "{root}/ckpt"
[streams.orders]
format = "json"
path = "{root}/orders"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
options = {{ maxFilesPerTrigger = "1" }}
[queries.q]
sql = "SELECT k FROM orders"
sink = {{ format = "json", path = "{root}/out" }}
"""


def write(root: Path, *files: tuple[tuple[Any, int], ...]) -> Path:
    (root / "orders").mkdir(exist_ok=True)
    (root / "job.toml").write_text(JOB.format(root=root))
    number = len(list((root / "orders").iterdir()))
    for rows in files:
        lines = [json.dumps({"k": k, "ts": f"2024-01-01T00:00:{second:02d}"}) for k, second in rows]
        file = root / "orders" / f"{number:03d}.json"
        file.write_text("\n".join(lines) + "\n")
        number += 1
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Files are taken in the order of their times.
    return root / "job.toml"


def run(job: Path, *options: str) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["run", str(job), "--engine", "embedded", "--once", *options])
    return done.exit_code, done.output + str(done.exception or "")


GOOD, LATER, BAD = ((1, 30), (2, 31)), ((3, 5), (4, 40)), (("x", 50), ("y", 51), (5, 52))


def test_run_says_how_many_rows_were_late_and_which_are_dead_letters(tmp_path: Path) -> None:
    code, said = run(write(tmp_path, GOOD, LATER, BAD))
    lines = said.splitlines()
    assert code == 0
    assert "step 1: late: orders 1 (25 %) so far" in lines
    assert f"late: orders 1 (14 %), in {tmp_path}/ckpt/late/orders" in lines
    (dead,) = (line for line in lines if line.startswith("dead letters: orders 2 (29 %), the first: "))
    assert "cannot read 'x' as int64" in dead and dead.endswith(f", in {tmp_path}/ckpt/dead_letters/orders")


def test_a_run_says_what_it_has_lost_itself(tmp_path: Path) -> None:
    run(write(tmp_path, GOOD, LATER, BAD))
    code, said = run(write(tmp_path, ((6, 55),)), "--fail-on-late", "--fail-on-dead-letters")
    assert code == 0 and "late:" not in said and "dead letters:" not in said


@pytest.mark.parametrize(
    ("file", "option", "fails"),
    [
        (LATER, "--fail-on-late", True),
        (LATER, "--fail-on-dead-letters", False),
        (BAD, "--fail-on-late", False),
        (BAD, "--fail-on-dead-letters", True),
    ],
)
def test_a_run_can_fail_by_them(tmp_path: Path, file: tuple[tuple[Any, int], ...], option: str, fails: bool) -> None:
    code, said = run(write(tmp_path, GOOD, file), option)
    assert (code != 0, option in said) == (fails, fails)
    assert list((tmp_path / "out").glob("step=*/*")), "what can be answered is"


def test_an_endless_run_has_no_end_to_fail_at(tmp_path: Path) -> None:
    job = write(tmp_path, GOOD)
    done = CliRunner().invoke(app, ["run", str(job), "--engine", "embedded", "--fail-on-late"])
    assert done.exit_code != 0 and "works only with --once" in str(done.exception)


def test_a_line_at_each_tenfold() -> None:
    engine = ms.Engine()
    engine._manifest = first_manifest()
    watch, said = LostRowsWatch({(LATE, "A"): LostRows(100)}), 0
    from dataclasses import replace

    for late in range(100, 1300):
        report = engine.report()
        stream = replace(report.streams["A"], rows=10 * late, late=late)
        said += len(watch.news(replace(report, streams={"A": stream}, queries={})))
    assert said == 4  # 1, 10, 100 and 1,000 rows.


def test_a_program_is_warned_once_for_each_stream() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT k FROM A")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for second in (10, 1, 2, 3):
            engine.push({"A": [{"k": 1, "ts": f"2024-01-01T00:00:{second:02d}"}]})
        assert [str(one.message).partition(" (")[0] for one in caught] == [
            "1 row of stream A came late: late rows join nothing"
        ]
        assert caught[0].filename == __file__
        engine.push({"A": [{"k": "x", "ts": "2024-01-01T00:00:59"}]})
        engine.push({"A": [{"k": "x", "ts": "2024-01-01T00:00:59"}]})
    assert len(caught) == 2 and "could not be read" in str(caught[1].message)
    assert engine.report().streams["A"].late == 3 and engine.dead_letters["A"].num_rows == 2


def test_check_warns_of_files_that_are_taken_one_by_one_without_lateness(tmp_path: Path) -> None:
    job = write(tmp_path, GOOD, LATER)
    said = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["check", str(job), "--engine", "embedded"]).output
    assert "stream orders has no lateness, and each step reads 1 file" in said
    (tmp_path / "job.toml").write_text(
        job.read_text().replace('timestamp = "ts"', 'timestamp = "ts"\nlateness = "1 minute"')
    )
    said = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["check", str(job), "--engine", "embedded"]).output
    assert "lateness" not in said


def test_check_warns_of_csv_files_whose_names_would_be_a_row(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    stream = '[streams.A]\nformat = "csv"\npath = "in"\nschema = "k BIGINT, ts TIMESTAMP"\ntimestamp = "ts"\n'
    job.write_text(f'checkpoint = "ckpt"\n{stream}[queries.q]\nsql = "SELECT k FROM A"\nsink = {{ path = "out" }}\n')
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('"K", ts\n1,2026-01-01\n')
    warning = 'If the files begin with names, set options = { header = "true" }'
    runner = CliRunner(env={"COLUMNS": "300"})
    assert warning in runner.invoke(app, ["check", str(job), "--engine", "embedded"]).output
    assert warning in runner.invoke(app, ["check", str(job)]).output
    (tmp_path / "in" / "a.csv").write_text("1,2026-01-01\n")
    assert warning not in runner.invoke(app, ["check", str(job), "--engine", "embedded"]).output
    (tmp_path / "in" / "a.csv").write_text("k;ts\n1;2026-01-01\n")
    job.write_text(job.read_text().replace('timestamp = "ts"\n', 'timestamp = "ts"\noptions = { header = "true" }\n'))
    said = str(runner.invoke(app, ["run", str(job), "--engine", "embedded", "--once"]).exception)
    assert "if ';' separates its columns, say options = { sep = \";\" }" in said


def test_names_of_the_outputs() -> None:
    assert LostRows(0, 0).text((DEAD_LETTERS, "A")) == "dead letters: A 0"
