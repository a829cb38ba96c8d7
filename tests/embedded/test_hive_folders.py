"""Partitions within the folder of a stream are read with their columns, as on Spark; other folders are named."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from midstream.cli.main import app

SCHEMA = "k BIGINT, day DATE, name VARCHAR, ts TIMESTAMP"
FOLDERS = ("k=5/day=2024-01-02/name=a%20b", "k=6/day=2024-01-03/name=__HIVE_DEFAULT_PARTITION__")
EXPECTED = [(5, dt.date(2024, 1, 2), "a b"), (6, dt.date(2024, 1, 3), None)]


def write(root: Path, folders: tuple[str, ...] = FOLDERS, format: str = "parquet", schema: str | None = SCHEMA) -> Path:
    """A job over partitions, and files in each of them."""
    for number, folder in enumerate(folders):
        (root / "A" / folder).mkdir(parents=True)
        moment = dt.datetime(2024, 1, 1, 0, 0, number)
        if format == "parquet":
            pq.write_table(pa.table({"ts": pa.array([moment], pa.timestamp("us"))}), root / "A" / folder / "0.parquet")
        elif format == "csv":
            (root / "A" / folder / "0.csv").write_text(f"ts\n{moment.isoformat()}\n")
        else:
            (root / "A" / folder / "0.json").write_text(f'{{"ts": "{moment.isoformat()}"}}\n')
    declared = "" if schema is None else f'schema = "{schema}"\n'
    options = 'options = { header = "true" }\n' if format == "csv" else ""
    (root / "job.toml").write_text(
        f'checkpoint = "{root}/ckpt"\n[streams.A]\nformat = "{format}"\npath = "{root}/A"\n{declared}{options}'
        'timestamp = "ts"\n[queries.q]\nsql = "SELECT k, day, name FROM A"\n'
        f'sink = {{ format = "parquet", path = "{root}/out" }}\n'
    )
    return root / "job.toml"


def results(root: Path) -> list[tuple[Any, ...]]:
    found = [row for file in (root / "out").glob("step=*/*") for row in pq.read_table(file).to_pylist()]
    return sorted((tuple(row.values())[:3] for row in found), key=lambda row: row[0])


def tell(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def run(job: Path) -> str:
    return tell("run", str(job), "--engine", "embedded", "--once")


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_partitions_are_read_with_their_columns(tmp_path: Path, schema: str | None) -> None:
    run(job := write(tmp_path, schema=schema))
    assert results(tmp_path) == EXPECTED
    # Each file is read once, and a new partition is found.
    (tmp_path / "A" / "k=7" / "day=2024-01-04" / "name=c").mkdir(parents=True)
    late = pa.table({"ts": pa.array([dt.datetime(2024, 1, 2)], pa.timestamp("us"))})
    pq.write_table(late, tmp_path / "A" / "k=7" / "day=2024-01-04" / "name=c" / "0.parquet")
    run(job)
    assert results(tmp_path) == [*EXPECTED, (7, dt.date(2024, 1, 4), "c")]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_files_of_texts_too(tmp_path: Path, format: str) -> None:
    run(write(tmp_path, format=format))
    assert results(tmp_path) == EXPECTED


def test_a_value_that_is_none_of_the_type_is_a_dead_letter(tmp_path: Path) -> None:
    run(write(tmp_path, folders=("k=x/day=2024-01-02/name=a",)))
    assert results(tmp_path) == []
    (dead,) = (tmp_path / "ckpt" / "dead_letters" / "A").glob("step=*/*")
    assert "cannot read 'x'" in pq.read_table(dead).to_pylist()[0]["_reason"]


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_folders_that_are_no_partitions_are_named(tmp_path: Path, engine: str) -> None:
    job = write(tmp_path, folders=("old", "_hidden", "k=1/day=2024-01-02/name=a"))
    said = tell("check", str(job), "--engine", engine)
    assert "does not read 1 folder in" in said and "old" in said and "_hidden" not in said


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, engine: str) -> None:
    job = write(tmp_path, folders=FOLDERS)
    (tmp_path / "A" / "lost.json").symlink_to(tmp_path / "gone.json")
    said = tell("check", str(job), "--engine", engine)
    assert "does not read 1 link in" in said and "lost.json" in said and "folder in" not in said


def test_the_run_names_them_too(tmp_path: Path) -> None:
    assert "does not read 1 folder in" in run(write(tmp_path, folders=("old", *FOLDERS)))
    assert results(tmp_path) == EXPECTED
