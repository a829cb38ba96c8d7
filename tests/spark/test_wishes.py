"""What a job's methods put in the command log, and what a step without rows does about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.commands import AddQuery, ChangeQuery, Command, DropQuery, Migrate, Reshare
from midstream.model.manifest import Manifest
from midstream.model.sharing import SHARING
from midstream.spark import control
from midstream.spark.run import Run
from tests.spark.crash_job import STREAMS
from tests.spark.drive import Hooks, Place, finish, job, read_all
from tests.spark.test_jobs import PAIRS, feed_step, jobs

SELF = "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS"
NOTHING = {"path": "/nowhere", "format": "parquet"}

WISHES: list[tuple[Callable[[Run], int], Command]] = [
    (lambda run: run.add_query("r", PAIRS, sink=NOTHING), AddQuery("r", PAIRS, None, NOTHING, history=True)),
    (
        lambda run: run.add_query("r", PAIRS, sink=NOTHING, history=False),
        AddQuery("r", PAIRS, None, NOTHING, None, False),
    ),
    (lambda run: run.change_query("pairs", PAIRS), ChangeQuery("pairs", PAIRS)),
    (lambda run: run.migrate("pairs", "(B A)", "gms"), Migrate("pairs", "(B A)", "gms")),
    (lambda run: run.migrate("pairs", "(B A)", "gms", together=True), Migrate("pairs", "(B A)", "gms", together=True)),
    (lambda run: run.reshare("cpu_opt"), Reshare("cpu_opt")),
]


def test_wishes_go_to_the_command_log(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))

    def granted(manifest: Manifest, *_: object) -> Manifest:
        return manifest

    monkeypatch.setattr(control, "take", granted)
    assert [wish(run) for wish, _ in WISHES] == list(range(1, 1 + len(WISHES)))
    assert [w["command"] for w in run.status()["waiting_commands"]] == [command.kind for _, command in WISHES]
    assert [command for _, command in run._driver.folders.commands.after(0)] == [command for _, command in WISHES]


def test_a_changed_query_brings_the_columns_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    changed = PAIRS.replace("SELECT A.u AS a", "SELECT A.n AS a")
    run._driver.folders.commands.append(ChangeQuery("pairs", changed))
    read = [set(query.columns_of("A")) for query in run._driver.queries_to_come()]
    assert "n" not in read[0] and "n" in read[1]


@pytest.mark.parametrize("mode", SHARING)
def test_the_first_manifest_has_the_jobs_mode(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    made = job(spark, Place(tmp_path), STREAMS, {"pairs": PAIRS}, sharing=mode)
    assert made._manifest().sharing == mode


def test_an_unknown_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ms.QueryError, match=r"unknown sharing 'some' \(at Job\)\. Remedy: use one of: auto, mem_opt"):
        ms.Job(spark, tmp_path, sharing="some")


@pytest.mark.parametrize(
    "command",
    [
        AddQuery("r", SELF),
        ChangeQuery("q", SELF.replace("5", "7")),
        DropQuery("q"),
        Migrate("q", "(y x)"),
        Reshare("mem_opt"),
    ],
    ids=lambda command: command.kind,
)
def test_a_step_without_rows_does_what_was_asked(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, command: Command
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    reader = spark.readStream.schema("k BIGINT, ts BIGINT").option("maxFilesPerTrigger", 1)
    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    asked.stream("A", reader.json(str(source)), timestamp="ts")
    asked.query("q", SELF, sink=ms.sinks.files(tmp_path / "out"))
    for number, text in enumerate(['{"k": 1, "ts": 5}\n', "", '{"k": 1, "ts": 6}\n']):
        (source / f"{number}.json").write_text(text)
        os.utime(source / f"{number}.json", (1_600_000_000 + number, 1_600_000_000 + number))
    hooks.give(1, command)
    before = jobs(spark)
    run = finish(asked)
    done: list[Any] = [event for event in run.events if event.kind == "step_done"]
    assert [event.rows_in for event in done] == [{"A": 1}, {"A": 0}, {"A": 1}]
    assert jobs(spark) - before == 3
    assert read_all(tmp_path / "out").num_rows == (1 if isinstance(command, DropQuery) else 1 + 3)
