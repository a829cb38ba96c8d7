"""The job files of NEXMark answer what DuckDB answers over the whole input, in steps, on lanes, after restarts."""

from __future__ import annotations

import datetime
import runpy
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.cli.main import app
from midstream.demo.nexmark import generate, side_input
from midstream.sql.job_file import read_job_file
from tests.embedded.nexmark_oracle import SQL

FILES = sorted(
    (Path(__file__).parents[2] / "examples" / "nexmark").glob("q*.toml"), key=lambda path: int(path.stem[1:])
)
EVENTS, PER_SECOND, STEPS = 21_000, 1_000, 5
TABLES = vars(generate(EVENTS, per_second=PER_SECOND))
SIDE = side_input()


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in {**TABLES, "side_input": SIDE}.items():
        connection.register(name, table)
    return connection


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, float):
        return round(value, 4)
    return value.normalize() if isinstance(value, Decimal) else value


def rows(found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(plain(value) for value in row) for row in found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_query_of_nexmark_answers_as_duckdb(
    path: Path, lanes: int, oracle: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    job = read_job_file(path)
    engine = ms.Engine(lanes=lanes)
    for name, stream in job.streams.items():
        engine.create_stream(name, stream.schema or "", timestamp=stream.timestamp)
    for name in job.tables:
        engine.table(name, SIDE)
    for name, query in job.queries.items():
        engine.add_query(name, query.sql)
    answers: dict[str, list[tuple[Any, ...]]] = {name: [] for name in job.queries}
    for step in range(STEPS):
        if step == 3:
            engine.save(tmp_path / "saved")
            engine = ms.Engine.load(tmp_path / "saved")
        for name, table in engine.push({name: part(table, step) for name, table in TABLES.items()}).items():
            answers[name] += [tuple(row.values()) for row in table.to_pylist()]
    for name, found in answers.items():
        expected = oracle.execute(SQL[path.stem, name]).fetchall()
        assert expected and rows(found) == rows(expected), name


def part(table: pa.Table, step: int) -> pa.Table:
    begin, end = (table.num_rows * n // STEPS for n in (step, step + 1))
    return table.slice(begin, end - begin)


def test_a_job_file_runs_as_its_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in FILES[0].parent.glob("*.*"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr("sys.argv", ["generate.py", "5000"])
    runpy.run_path(str(tmp_path / "generate.py"), run_name="__main__")
    for path in (tmp_path / FILES[3].name, tmp_path / "q13.toml"):
        done = CliRunner().invoke(app, ["run", str(path), "--engine", "embedded", "--once"])
        assert done.exit_code == 0, done.output
    connection = duckdb.connect()
    for name, table in vars(generate(5_000)).items():
        connection.register(name, table)
    connection.register("side_input", SIDE)
    for query, name in (("q3", "sellers"), ("q13", "enriched")):
        found = connection.sql(f"SELECT count(*) FROM 'nexmark/out/{query}/{name}/**/*.parquet'").fetchall()
        assert found == connection.sql(f"SELECT count(*) FROM ({SQL[query, name]})").fetchall() != [(0,)]
