"""What a job's methods put in the command log, and what a step without rows does about it."""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.reshare import Reshare
from midstream.commands.stop import Stop
from midstream.dashboard.views import views
from midstream.model.command import Command
from midstream.model.events import CommandRefused
from midstream.sharing.schemes.scheme_contract import schemes
from midstream.spark.driver import Driver
from midstream.spark.running_job import Run
from tests.crash_case import STREAMS
from tests.spark.crash_job import CASE
from tests.spark.drive import Hooks, Place, finish, job, read_all
from tests.spark.test_jobs import PAIRS, feed_step, jobs, until

SELF = "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS"
NOTHING = {"path": "/nowhere", "format": "parquet"}
ELSEWHERE = {"path": "/elsewhere", "format": "parquet"}

COMMANDS: list[tuple[Callable[[Run], int], Command]] = [
    (lambda run: run.add_query("r", PAIRS, sink=NOTHING), AddQuery("r", PAIRS, None, NOTHING, history=True)),
    (
        lambda run: run.add_query("s", PAIRS, sink=ELSEWHERE, history=False),
        AddQuery("s", PAIRS, None, ELSEWHERE, history=False),
    ),
    (lambda run: run.change_query("pairs", PAIRS), ChangeQuery("pairs", PAIRS)),
    (lambda run: run.migrate("pairs", "(B A)", "gms"), Migrate("pairs", "(B A)", "gms")),
    (lambda run: run.migrate("pairs", "(A  B)", "gms", together=True), Migrate("pairs", "(A B)", "gms", together=True)),
    (lambda run: run.reshare("cpu_opt"), Reshare("cpu_opt")),
]


def test_commands_go_to_the_command_log(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    assert [give(run) for give, _ in COMMANDS] == list(range(1, 1 + len(COMMANDS)))
    assert [w["command"] for w in run.status()["waiting_commands"]] == [command.kind for _, command in COMMANDS]
    assert [command.kind for command in run.not_applied] == [command.kind for _, command in COMMANDS]
    assert [command for _, command in run._driver.folders.commands.after(0)] == [command for _, command in COMMANDS]
    run._driver.folders.commands.append(Stop(run._driver.writer.claim.number))
    assert not any(isinstance(command, Stop) for command in run.not_applied), "the next start does not stop for it"
    assert main(["status", run._driver.folders.root]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "commands not taken yet: they wait for the next batch with data, after the next start" in printed
        and " stop " not in printed
    )


def test_a_step_under_way_is_known_with_its_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, seen, commit = Place(tmp_path), [], Driver._commit
    feed_step(place, 0)

    def observed(driver: Driver, *given: Any) -> Any:
        seen.append(driver.times.under_way)
        return commit(driver, *given)

    monkeypatch.setattr(Driver, "_commit", observed)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    assert (seen[0].step, seen[0].rows) == (0, sum(run.times[0].rows.values()))
    assert run.under_way is None


def test_a_changed_query_brings_the_columns_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    changed = PAIRS.replace("SELECT A.u AS a", "SELECT A.n AS a")
    run._driver.folders.commands.append(ChangeQuery("pairs", changed))
    read = [set(query.columns_of("A")) for query in run._driver.queries_to_come()]
    assert "n" not in read[0] and "n" in read[1]


@pytest.mark.parametrize("mode", schemes())
def test_the_first_manifest_has_the_jobs_mode(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    made = job(spark, Place(tmp_path), STREAMS, {"pairs": PAIRS}, sharing=mode)
    assert made._first().sharing == mode


def test_an_unknown_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ms.QueryError, match=r"unknown sharing 'some' \(at Job\)\. Remedy: use one of: auto, cpu_opt"):
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
def test_a_step_without_rows_takes_commands(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, command: Command
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    reader = spark.readStream.schema("k BIGINT, ts BIGINT").option("maxFilesPerTrigger", 1)
    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    asked.stream("A", reader.json(str(source)), timestamp="ts", unit="us")
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


def test_a_restart_with_another_window_and_mode(spark: SparkSession, tmp_path: Path) -> None:
    """What the script changed is changed, what commands changed stays, and nothing is dropped."""
    place, wider, widest = Place(tmp_path), PAIRS.replace("4 SECONDS", "6 SECONDS"), PAIRS.replace("4", "9")
    feed_step(place, 0)
    finish(job(spark, place, STREAMS, {"script": PAIRS, "told": PAIRS}))
    second = {"script": wider, "told": PAIRS}
    feed_step(place, 1)
    run = finish(job(spark, place, STREAMS, second, sharing="mem_opt"))
    assert kinds(run) >= {("query_changed", "script"), ("sharing_changed", "")}
    assert ("query_dropped", "script") not in kinds(run)
    run.change_query("told", widest)
    run.reshare("cpu_opt")
    for step in (2, 3):
        feed_step(place, step)
        run = finish(job(spark, place, STREAMS, second, sharing="mem_opt"))
        assert (step == 2) == (("query_changed", "told") in kinds(run))
        assert ("query_changed", "script") not in kinds(run)
    manifest = place.manifest()
    assert {name: entry.sql for name, entry in manifest.queries.items()} == {"script": wider, "told": widest}
    assert manifest.sharing == "cpu_opt"


def test_a_change_to_columns_that_the_running_union_lacks(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = job(spark, place, STREAMS, {"pairs": PAIRS}).start({"processingTime": "0 seconds"})
    until(run, 0)
    carried = run._driver.layout
    run.change_query("pairs", PAIRS.replace("WHERE", "WHERE A.n > 1 AND"))
    for step in (1, 2, 3):
        feed_step(place, step)
        until(run, step)
    run.stop()
    assert carried is not None and "n" not in carried.slots["A"]
    assert run._driver.layout is not None and "n" in run._driver.layout.slots["A"]
    rows = {row["u"]: row["n"] for step in CASE.steps for row in step["A"].to_pylist()}
    answered = [place.by_step("pairs", step + 1)[step] for step in (1, 2, 3)]
    found = [rows[u] for table in answered if table is not None for u in table.column("a").to_pylist()]
    assert found and all(n is not None and n > 1 for n in found)


def test_it_is_stopped_by_a_command_to_its_checkpoint(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = job(spark, place, STREAMS, {"pairs": PAIRS}).start({"processingTime": "0 seconds"})
    until(run, 0)
    assert Checkpoint.open(place.checkpoint).liveness().state == "running"
    run.rescale(3)
    assert main(["stop", str(place.checkpoint)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 command not taken: 1 (rescale)", "start the job again: its first batch of data takes it"
    ]  # fmt: skip
    assert run.await_termination(30) and run.state == "stopped"
    assert Checkpoint.open(place.checkpoint).liveness().state == "stopped"
    feed_step(place, 1)
    later = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    assert not later.stop_requested and later.status()["step"] > run.status()["step"]
    assert place.manifest().lanes == 3, "the command waited"


def test_a_step_that_takes_the_request_ends_the_job_by_itself(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is in the log no longer then, where it is listened for."""
    monkeypatch.setattr("midstream.spark.running_job._LISTENS_EVERY", 600.0)
    place = Place(tmp_path)
    feed_step(place, 0)
    run = job(spark, place, STREAMS, {"pairs": PAIRS}).start({"processingTime": "0 seconds"})
    until(run, 0)
    assert main(["stop", str(place.checkpoint), "--wait", "0"]) == 1
    feed_step(place, 1)
    assert run.await_termination(60) and run.state == "stopped"


def test_its_dashboard_shows_every_view_and_takes_a_command(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    run = job(spark, place, STREAMS, {"pairs": PAIRS}, lanes=2).start({"processingTime": "0 seconds"})
    until(run, 0)
    with run.dashboard(port=0, control=True, token="of no use elsewhere") as dashboard:
        at = dashboard.url.partition("?")[0].partition("#")[0]
        overview = json.loads(asked(f"{at}api/0"))
        assert (overview["host"], overview["lanes"], overview["queries"]) == ("spark", 2, ["pairs"])
        for name in views():
            assert json.loads(asked(f"{at}api/0/views/{name}")) is not None, name
        command = {"command": "migrate", "query": "pairs", "plan": "(B A)", "strategy": "moving_state"}
        asked(f"{at}api/0/commands", json.dumps(command).encode())
        feed_step(place, 1)
        until(run, 1)
    run.stop()
    assert run.report().query("pairs").plan == "(B A)"


def asked(url: str, data: bytes | None = None) -> bytes:
    """What a server answers; with data, to a command that has the token."""
    headers = {"X-Midstream-Token": "of no use elsewhere", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return bytes(answer.read())


def kinds(run: Run) -> set[tuple[str, str]]:
    """What happened, and to which query."""
    return {(event.kind, getattr(event, "query", "")) for event in run.events}


def test_a_query_whose_sink_takes_nothing_is_refused_and_the_job_runs_on(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    (tmp_path / "file").write_text("")
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    write_deltalake(tmp_path / "table", pa.table({"other": [1]}))
    run.add_query("refused", PAIRS, sink={"path": str(tmp_path / "file" / "out")})
    run.add_query("unlike", PAIRS, sink={"type": "delta", "path": str(tmp_path / "table")})
    run.add_query("beside", PAIRS)
    feed_step(place, 1)
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS}))
    refused, unlike = [event for event in run.events if isinstance(event, CommandRefused)]
    assert refused.command["query"] == "refused" and "Not a directory" in refused.reason
    assert unlike.command["query"] == "unlike" and "other is not of the results" in unlike.reason
    assert list(run._driver.manifest.queries) == ["pairs", "beside"]
    assert run._driver.manifest.last_command == 3


def test_a_job_whose_table_has_other_columns_ends_before_a_step_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    feed_step(place, 0)
    write_deltalake(tmp_path / "table", pa.table({"other": [1]}))

    def started() -> ms.Job:
        found = job(spark, place, STREAMS, {"pairs": PAIRS})
        return found.query("unlike", PAIRS, sink={"type": "delta", "path": str(tmp_path / "table")})

    with pytest.raises(ms.SinkError, match="other is not of the results"):
        finish(started())
    assert place.manifest().step == -1
    shutil.rmtree(tmp_path / "table")
    finish(started())
    assert place.manifest().step == 0
