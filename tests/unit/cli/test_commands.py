"""`migrate`, `add`, `change`, `drop`, `rescale`, `reshare` go through the command log."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from midstream.checkpoint.command_log import CommandLog
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.model.command import Command
from tests.unit.cli.conftest import SQL, SmallJob

PAIR = "SELECT A.k FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k"
NARROWER = SQL.replace("20 SECONDS", "5 SECONDS")


def sent(job: SmallJob) -> list[object]:
    return [command for _, command in job.commands.after(0)]


def test_each_command_is_appended(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(job.path)
    assert main(["migrate", path, "pairs", "(A  (B C))"]) == 0
    assert main(["add", path, "two", PAIR, "--plan", "(B A)", "--out", "results", "--format", "json"]) == 0
    assert main(["drop", path, "two"]) == 0
    assert main(["rescale", path, "--lanes", "5"]) == 0
    assert "command 4 (rescale) is in the log" in capsys.readouterr().out
    assert sent(job) == [
        Migrate("pairs", "(A (B C))", "auto"),
        AddQuery("two", PAIR, "(B A)", {"format": "json", "path": str(Path.cwd() / "results")}),
        DropQuery("two"),
        Rescale(5),
    ]
    job.step()
    assert job.manifest.queries["pairs"].plan == "(A (B C))" and job.manifest.lanes == 5


@pytest.mark.parametrize("url", ["s3://bucket/a", "gs://bucket/a", "abfs://c@account.dfs.core.windows.net/a"])
def test_results_go_to_a_url_as_it_is_given(job: SmallJob, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number, given in enumerate((["--sink", f"path={url}0"], ["--out", f"{url}1"])):
        assert main(["add", str(job.path), f"q{number}", PAIR, *given]) == 0
        assert sent(job)[number] == AddQuery(f"q{number}", PAIR, None, {"path": f"{url}{number}"})
    for given in (["--sink", "path=hdfs://name/a"], ["--out", "hdfs://name/a"], ["--out", "b", "--sink", "path=a"]):
        assert main(["add", str(job.path), "three", PAIR, *given]) != 0
    capsys.readouterr()
    assert main(["add", str(job.path), "three", PAIR, "--out", "out", "--format", "xml"]) == 1
    assert "use one of: parquet, json, csv" in capsys.readouterr().err
    assert len(sent(job)) == 2


def test_what_an_option_of_its_own_gives_is_text(job: SmallJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job.path.parent)
    assert main(["add", str(job.path), "q", PAIR, "--out", "2024", "--format", "json"]) == 0
    assert sent(job) == [AddQuery("q", PAIR, None, {"path": str(job.path.parent / "2024"), "format": "json"})]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["add", "{}", "two", PAIR, "--no-history"], AddQuery("two", PAIR, history=False)),
        (["migrate", "{}", "pairs", "(A (B C))", "--together"], Migrate("pairs", "(A (B C))", together=True)),
        (["change", "{}", "pairs", NARROWER], ChangeQuery("pairs", NARROWER)),
        (["reshare", "{}", "cpu_opt"], Reshare("cpu_opt")),
    ],
)
def test_commands_to_queries_that_share_are_appended(arguments: list[str], command: Command, job: SmallJob) -> None:
    assert main([a.format(job.path) for a in arguments]) == 0
    assert sent(job) == [command]


def test_the_outcome_as_json(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rescale", str(job.path), "--lanes", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "id": 1, "command": "rescale", "lanes": 5, "outcome": "sent", "event": None, "job": "saved",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["migrate", "{}", "pears", "(A (B C))"], "pears"),
        (["migrate", "{}", "pairs", "(A (B D))"], "'D'"),
        (["migrate", "{}", "pairs", "(A B)"], "C"),
        (["migrate", "{}", "pairs", "(A (B C)"], "plan"),
        (["migrate", "{}", "pairs", "(A (B C))", "--strategy", "magic"], "moving_state"),
        (["migrate", "{}", "pairs", "(A (B C))", "--strategy", "pause_drain_resume"], "stateful"),
        (["migrate", "{}", "pairs", "(A (B C))", "--option", "speed=9"], "speed"),
        (["migrate", "{}", "pairs", "(A (B C))", "--option", "speed"], "NAME=VALUE"),
        (["migrate", "{}", "pairs", "(A (B C))", "--option", "speed=9", "--option", "speed=8"], "the same name"),
        (
            ["spread", "{}", "pairs", "psp", "--option", "relocation=passive", "--relocation", "passive"],
            "relocation has more than one value",
        ),
        (["add", "{}", "pairs", PAIR], "pairs"),
        (["add", "{}", "two", "SELECT A.z FROM A"], "z"),
        (["add", "{}", "two", "SELECT FROM"], "line 1"),
        (["add", "{}", "two", PAIR, "--plan", "(A C)"], "C"),
        (["drop", "{}", "pears"], "pairs"),
        (["rescale", "{}", "--lanes", "0"], "lanes"),
        (["rescale", "{}"], "lanes"),
        (["rescale", "{}", "--lanes", "many"], "lanes"),
        (["reshare", "{}", "sideways"], "use one of: auto, cpu_opt, mem_opt, off, pull_up, push_down"),
        (["reshare", "{}"], "SCHEME"),
        (["change", "{}", "pairs"], "SQL"),
        (["change", "{}", "pears", PAIR], "use one of: pairs"),
        (["change", "{}", "pairs", PAIR], "cannot change the streams or the join conditions"),
        (["change", "{}", "pairs", "SELECT FROM"], "line 1"),
        (["fly", "{}"], "fly"),
    ],
)
def test_wrong_use_is_one_message_and_sends_nothing(
    arguments: list[str], message: str, job: SmallJob, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([a.format(job.path) for a in arguments]) == 2
    out, error = capsys.readouterr()
    assert not out
    assert error.startswith("midstream: ") and message in error and "Remedy: " in error and "Traceback" not in error
    assert sent(job) == []


def test_commands_are_checked_against_what_waits_already(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(job.path)
    assert main(["add", path, "two", PAIR]) == 0
    assert main(["migrate", path, "two", "(B A)"]) == 0
    assert main(["drop", path, "two"]) == 0
    assert main(["drop", path, "two"]) == 2
    assert len(sent(job)) == 3


def test_a_query_can_come_from_standard_input(job: SmallJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(PAIR))
    assert main(["add", str(job.path), "two", "-"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(PAIR))
    assert main(["change", str(job.path), "two", "-"]) == 0
    assert sent(job) == [AddQuery("two", PAIR), ChangeQuery("two", PAIR)]


def test_waiting_shows_what_was_done(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(job.path)
    with job.running():
        move = ["migrate", path, "pairs", "(A (B C))", "--strategy", "moving_state"]
        assert main([*move, "--wait", "20", "--json"]) == 0
        migrated = json.loads(capsys.readouterr().out)
        assert main(["add", path, "two", PAIR, "--wait", "20"]) == 0
        assert "command 2 (add_query) was done in step" in capsys.readouterr().out
        assert main(["rescale", path, "--lanes", "3", "--wait", "20"]) == 0
        capsys.readouterr()
        assert main(["rescale", path, "--lanes", "3", "--wait", "20"]) == 0
        assert "command 4 (rescale) was done: it was so already" in capsys.readouterr().out
        assert main(["drop", path, "two", "--wait", "20"]) == 0
    assert migrated["outcome"] == "done" and migrated["event"]["plan"] == "(A (B C))"


def test_waiting_says_what_a_query_sees(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(job.path)
    with job.running():
        assert main(["add", path, "like", SQL, "--wait", "20"]) == 0
        assert "sees all rows" in capsys.readouterr().out
        assert main(["add", path, "new", SQL, "--no-history", "--wait", "20"]) == 0
        assert " on, exact from 1970-01-01 00:00:20" in capsys.readouterr().out
        assert main(["change", path, "pairs", SQL.replace("20", "5"), "--wait", "20"]) == 0
        assert "command 3 (change_query) was done in step" in capsys.readouterr().out
        assert main(["reshare", path, "mem_opt", "--wait", "20"]) == 0
        assert "queries share by mem_opt, before: auto" in capsys.readouterr().out
    assert "5 SECONDS" in job.manifest.queries["pairs"].sql and job.manifest.sharing == "mem_opt"


def test_waiting_shows_a_refusal_as_failure(
    job: SmallJob, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = type(job.commands).append

    def drop_first(log: CommandLog, command: Command, taken: int = 0) -> int:
        append(log, DropQuery("pairs"), taken)  # somebody else was quicker
        return append(log, command, taken)

    monkeypatch.setattr(type(job.commands), "append", drop_first)
    with job.running():
        assert main(["migrate", str(job.path), "pairs", "(A (B C))", "--wait", "20"]) == 1
    assert "was refused" in capsys.readouterr().err


def test_waiting_in_vain_is_a_failure(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drop", str(job.path), "pairs", "--wait", "0"]) == 1
    assert "the job has not taken command" in capsys.readouterr().err
    assert sent(job) == [DropQuery("pairs")]


def test_a_table_whose_file_is_not_there_is_told_by_its_path(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(job.path), "rates", "no/rates.csv"]) != 0
    assert "table 'rates' reads no/rates.csv, which does not exist" in capsys.readouterr().err


def test_waiting_ends_well_once_a_migration_has_begun(job: SmallJob, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest strategy goes on for a whole window; the command waits for its begin alone."""
    path = str(job.path)
    options = ["--strategy", "parallel_track", "--wait", "3"]
    with job.running():
        assert main(["migrate", path, "pairs", "(A (B C))", *options]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"command 1 \(migrate\) was taken: begun in step \d+, under way, \d+ %: \w+", shown) or (
        "was done in step" in shown
    )


def test_waiting_says_how_the_job_is_after_the_wait(
    job: SmallJob, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was running when the command was sent, and was killed during the wait."""
    from midstream.checkpoint.liveness import Liveness
    from midstream.checkpoint.reader import Checkpoint

    killed = Liveness("failed", 100.0, "it was killed, or its machine was", "process 7 on db1")
    waited = []

    def state(checkpoint: Checkpoint) -> Liveness:
        return killed if waited else Liveness("running", 100.0)

    monkeypatch.setattr(Checkpoint, "liveness", state)
    monkeypatch.setattr("midstream.cli.send.time.sleep", lambda _: waited.append(1))
    assert main(["drop", str(job.path), "pairs", "--wait", "0.1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["job"] == "failed"
