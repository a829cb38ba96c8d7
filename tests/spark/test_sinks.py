"""Sinks keep their contract, and a sink of another package serves a job by nothing but the contract."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream import sinks
from midstream.model.discovery import kinds
from midstream.model.time_line import Stamp
from midstream.sinks import FileSink, FunctionSink, Sink, StagedStep
from midstream.sinks.contract import anything
from midstream.spark.result_frames import DataFrames
from midstream.storage.local import LocalStorage
from midstream.storage.storage_contract import Storage
from midstream.testing.sinks import SinkCase, check_sink
from tests.extension import distribution
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, finish, job

DATABASE = '''
import sqlite3

import midstream as ms


class Database(ms.sinks.Sink):
    """One transaction a step."""

    name = "database"

    def __init__(self, path):
        self.path = path

    def open(self):
        with sqlite3.connect(self.path) as db:
            db.execute("CREATE TABLE IF NOT EXISTS results (query TEXT, step INT, k INT, s TEXT)")

    def write(self, staged):
        rows = [(staged.name, staged.step, row["k"], row["s"]) for row in staged.table().to_pylist()]
        with sqlite3.connect(self.path) as db:
            db.execute("DELETE FROM results WHERE query = ? AND step = ?", (staged.name, staged.step))
            db.executemany("INSERT INTO results VALUES (?, ?, ?, ?)", rows)

    def forget_after(self, name, step, given_up):
        with sqlite3.connect(self.path) as db:
            db.execute("DELETE FROM results WHERE query = ? AND step > ?", (name, step))
'''


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Sink]]:
    named = {"midstream.sinks": {"database": "another_sink:Database"}}
    monkeypatch.syspath_prepend(str(distribution(tmp_path / "another", named, another_sink=DATABASE)))
    yield kinds(sinks, Sink, sinks.ENTRY_POINTS)["database"]
    sys.modules.pop("another_sink", None)


def rows_of_database(folder: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(folder / "results.db") as db:
        return [{"k": k, "s": s} for k, s in db.execute("SELECT k, s FROM results")]


def rows_of_files(folder: Path) -> list[dict[str, Any]]:
    return [row for file in folder.glob("step=*/*.parquet") for row in pq.read_table(file).to_pylist()]


def test_a_sink_of_another_package_keeps_the_contract(database: type[Sink]) -> None:
    check_sink(SinkCase(lambda folder: database.of({"path": str(folder / "results.db")}), rows_of_database))


def test_files_keep_the_contract() -> None:
    check_sink(SinkCase(lambda folder: FileSink(str(folder)), rows_of_files))


def test_a_function_keeps_the_contract(spark: SparkSession) -> None:
    def make(folder: Path) -> FunctionSink:
        def function(rows: DataFrame, step: int, query: str) -> None:
            target = folder / f"step={step}"
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            pq.write_table(rows.toArrow(), target / "rows.parquet")

        return FunctionSink(function)

    check_sink(SinkCase(make, rows_of_files, takes_back=False, frames=DataFrames(spark)))


class Appends(Sink):
    """Writes a step once more when it is committed once more."""

    name = "appends"

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, staged: StagedStep) -> None:
        number = len(list(Path(self.path).glob("step=*")))
        folder = Path(self.path) / f"step={number}"
        folder.mkdir()
        pq.write_table(staged.table(), folder / "rows.parquet")


class InSight(sinks.Staging):
    """Of all steps, and not hidden."""

    def of(self, stamp: Stamp) -> sinks.Staging:
        return self


class Hasty(Appends):
    """Has the tasks write where readers look."""

    def staging(self, scratch: Storage) -> sinks.Staging:
        return InSight(LocalStorage(f"{self.path}/step=0"))

    def write(self, staged: StagedStep) -> None:
        pass


class TakesAll(Appends):
    """Commits the files of attempts that died, too."""

    def write(self, staged: StagedStep) -> None:
        shutil.copytree(staged.staging.storage.url, f"{self.path}/step={staged.step}", dirs_exist_ok=True)


class KeepsAll(FileSink):
    """Does not forget."""

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        pass


class ForgetsSteps(FileSink):
    """Forgets the newest step too."""

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        super().forget_after(name, step - 1, given_up)


@pytest.mark.parametrize(
    ("make", "broken"),
    [
        (Appends, "files still there, changes nothing"),
        (Hasty, "nothing shows before the commit"),
        (TakesAll, "attempt that counts"),
        (KeepsAll, "takes later steps away"),
        (ForgetsSteps, "forgets nothing"),
    ],
)
def test_the_suite_finds_what_breaks_the_contract(make: Callable[[str], Sink], broken: str) -> None:
    with pytest.raises(AssertionError, match=broken):
        check_sink(SinkCase(lambda folder: make(str(folder)), rows_of_files))


A = StreamSpec("A", pa.schema([("k", pa.int64()), ("s", pa.string()), ("ts", pa.timestamp("us"))]))


def feed(place: Place, *steps: int) -> None:
    for step in steps:
        place.feed("A", step, pa.table({"k": [step], "s": ["x"], "ts": pa.array([step], pa.timestamp("us"))}, A.schema))


def test_a_job_writes_into_a_sink_of_another_package(spark: SparkSession, tmp_path: Path, database: type[Sink]) -> None:
    """As a job file names it; a job that is started without naming it again makes it of the manifest."""
    place, sink = Place(tmp_path), {"type": "database", "path": str(tmp_path / "results.db")}
    feed(place, 0, 1)
    finish(job(spark, place, [A], {}).query("q", "SELECT k, s FROM A", sink=sink))
    feed(place, 2)
    run = job(spark, place, [A], {}).query("q", "SELECT k, s FROM A", sink=database.of({"path": sink["path"]}))
    assert finish(run).status()["queries"]["q"]["sink"] == sink
    assert sorted(row["k"] for row in rows_of_database(tmp_path)) == [0, 1, 2]
    assert not list((place.checkpoint / "staging").rglob("*.parquet"))


def test_sinks_that_do_not_exist_are_refused_by_name(spark: SparkSession, tmp_path: Path, database: type[Sink]) -> None:
    asked = job(spark, Place(tmp_path), [A], {})
    with pytest.raises(
        ms.SinkError, match=r"unknown sink 'databse'.*use one of: database, delta, files, iceberg, kafka, postgresql"
    ):
        asked.query("q", "SELECT k FROM A", sink={"type": "databse"})
    with pytest.raises(ms.SinkError, match=r"'database' cannot be made.*table"):
        asked.query("q", "SELECT k FROM A", sink={"type": "database", "table": "x"})


def test_what_is_left_of_a_function_s_files_does_not_make_it_run_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies while it removes the files of a step that the function has done."""
    place, calls = Place(tmp_path), []
    rows = pa.table({"k": range(8), "s": ["x"] * 8, "ts": pa.array([0] * 8, pa.timestamp("us"))}, A.schema)
    place.feed("A", 0, rows)
    sql = "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS"

    def make() -> ms.Job:
        sink = lambda found, step, query: calls.append((step, found.count()))  # noqa: E731
        return job(spark, place, [A], {}, lanes=2).query("q", sql, sink=sink)

    class Killed(Exception):
        pass

    def dies(path: str) -> None:
        remove(path)
        if "/staging/" in path and path.endswith(".parquet"):
            assert len(list(Path(path).parent.glob("*.parquet"))) == 1
            raise Killed

    remove = os.unlink
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr("midstream.storage.local.os.unlink", dies)
        finish(make())
    finish(make())
    assert calls == [(0, 8)]
