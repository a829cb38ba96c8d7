"""`midstream run --engine embedded`: the files of folders, each once, whatever is killed; commands; an orderly end."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.embedded.job_run import FileJob
from midstream.model.errors import WriteError
from midstream.model.manifest import Manifest
from midstream.pipeline.crash_points import POINTS
from midstream.sinks import FileSink, StagedStep
from midstream.sql.job_file import JobFile, parse_job
from tests.forked import Fork, forks, run
from tests.job_folder import JOB, as_lines, fill, rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path, files=4)
    (tmp_path / "in" / "A" / "_half.parquet").write_text("not to be looked at")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(*arguments: str, **environment: str) -> Fork:
    return forks().start("midstream", "run", "job.toml", "--engine", "embedded", "--json", *arguments, **environment)


def once(**environment: str) -> dict[str, Any]:
    process = start("--once", **environment)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return dict(json.loads(out))


def keys(folder: Path) -> list[int]:
    tables = [pq.read_table(file) for file in sorted((folder / "out").glob("step=*/*.parquet"))]
    return [key for table in tables for key in table["k"].to_pylist()]


def test_each_file_is_read_once_in_the_order_of_arrival(folder: Path) -> None:
    status = once()
    assert status["step"] == 3, "one file of A a step"
    assert keys(folder) == list(range(20))
    assert once()["step"] == 3
    pq.write_table(rows(range(20, 22)), folder / "in" / "A" / "more.parquet")
    pyarrow.csv.write_csv(rows(range(20, 22)), folder / "in" / "B" / "more.csv")
    (folder / "in" / "C" / "more.json").write_text(as_lines(rows(range(20, 22))))
    assert once()["step"] == 4
    assert keys(folder) == list(range(22))


def test_paths_count_from_the_file_that_names_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "streams").mkdir()
    table = JOB[JOB.index("[streams.C]") : JOB.index("[queries")]
    (folder / "streams" / "c.toml").write_text(table.replace("in/C", "../in/C"))
    (folder / "job.toml").write_text('include = ["streams/c.toml"]' + JOB.replace(table, ""))
    for away in (folder.parent, folder / "in", folder):
        monkeypatch.chdir(away)
        assert main(["run", os.path.relpath(folder / "job.toml"), "--once", "--engine", "embedded"]) == 0
        assert keys(folder) == list(range(20)), "all files are read, each once"
    assert {path.name for path in folder.iterdir()} == {"ckpt", "in", "job.toml", "out", "streams"}


@pytest.mark.parametrize("old", ["in/A", "in/C/*.json", '"out"', "ckpt"])
def test_a_path_that_no_file_can_have_is_refused(folder: Path, old: str) -> None:
    job = JOB.replace(old, old.replace(old.strip('"')[0], "\\u0000", 1))
    with pytest.raises(ms.MidstreamError, match="the path has a character 0") as refused:
        FileJob(parse_job(job))
    assert refused.value.place and refused.value.remedy


def test_it_is_killed_at_every_point(folder: Path) -> None:
    """What was read is part of the step that reads it."""
    for at, point in enumerate(POINTS):
        step = max(0, at - POINTS.index("after_manifest"))
        process = start("--once", MIDSTREAM_KILL_AT=f"{point}:{step}")
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, point
    assert once()["step"] == 3
    assert keys(folder) == list(range(20))


def wait_for(folder: Path, steps: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Checkpoint.open(folder / "ckpt").manifest().step >= steps:
                return
        except ms.CheckpointError:
            pass
        time.sleep(0.05)
    raise AssertionError("it hangs")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_it_watches_takes_commands_and_ends_in_order(folder: Path, number: signal.Signals) -> None:
    process = start("--interval", "100 milliseconds")
    wait_for(folder, 3)
    run(
        "midstream", "migrate", "ckpt", "triples", "(A (B C))", "--strategy", "moving_state", "--wait", "30"
    ).check_returncode()
    pq.write_table(rows(range(20, 22)), folder / "in" / "A" / "more.parquet")
    wait_for(folder, 5)
    process.send_signal(number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    status = json.loads(out)
    assert status["queries"]["triples"]["plan"] == "(A (B C))"
    with ms.Engine(checkpoint=folder / "ckpt"):
        pass  # It let go of the checkpoint.


def test_it_ends_in_order_before_its_first_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declare = FileJob._declare

    def declare_and_end(job: FileJob, file: JobFile) -> None:
        declare(job, file)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as amid:
        amid.setattr(FileJob, "_declare", declare_and_end)
        assert main(["run", "job.toml", "--engine", "embedded"]) == 0
    assert "no step was done before the job ended" in capsys.readouterr().out
    once()
    assert keys(folder) == list(range(20))


def test_a_change_is_applied_though_nothing_is_new(folder: Path) -> None:
    once()
    wider = JOB.replace("20 SECONDS", "30 SECONDS")
    (folder / "job.toml").write_text(wider)
    assert "WINDOW 30 SECONDS" in once()["queries"]["triples"]["sql"]


def test_it_is_stopped_from_elsewhere(folder: Path) -> None:
    process = start("--interval", "100 milliseconds")
    wait_for(folder, 3)
    ended = run("midstream", "stop", "ckpt")
    assert ended.returncode == 0 and ended.stdout.startswith("stopped "), ended.stderr
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(out)["state"] == "stopped"
    assert once()["step"] > 3, "the step that took the command"
    assert keys(folder) == list(range(20))


def test_it_goes_back_and_reads_the_files_anew(folder: Path) -> None:
    once()
    run("midstream", "rewind", "ckpt", "1").check_returncode()
    assert keys(folder) == list(range(10))
    assert once()["step"] == 3
    assert keys(folder) == list(range(20))


@pytest.mark.parametrize("step", [1, 3])
def test_a_fork_reads_only_the_files_that_come_after_its_step(folder: Path, step: int) -> None:
    once()
    ms.open("ckpt").fork(step, "new")
    text = (folder / "job.toml").read_text()
    (folder / "job.toml").write_text(text.replace("ckpt", "new").replace('"out"', '"out2"'))
    status = once()
    assert status["step"] == 3
    tables = [pq.read_table(file) for file in sorted((folder / "out2").glob("step=*/*.parquet"))]
    assert [key for table in tables for key in table["k"].to_pylist()] == list(range(20))[5 * (step + 1) :]


def test_what_is_mended_meanwhile_needs_no_restart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a step is committed, and after, when a sink does not take its results."""
    failing = ["publish", "commit"]
    add, commit = ManifestLog.add, FileSink.commit

    def fail(at: str) -> None:
        if at in failing:
            failing.remove(at)
            raise WriteError("no space left on device", place=at, remedy="free some")

    def failing_publish(self: ManifestLog, manifest: Manifest) -> None:
        if manifest.step == 1:
            fail("publish")
        add(self, manifest)

    def failing_commit(self: FileSink, staged: StagedStep) -> None:
        if staged.step == 2:
            fail("commit")
        commit(self, staged)

    monkeypatch.setattr(ManifestLog, "add", failing_publish)
    monkeypatch.setattr(FileSink, "commit", failing_commit)
    with FileJob(parse_job(JOB)) as job:
        job.run(None, lambda: False, lambda _: None)
    assert failing == []
    assert keys(folder) == list(range(20))


def test_a_query_that_left_the_job_file_is_dropped(folder: Path) -> None:
    once()
    other = JOB.replace("[queries.triples]", "[queries.others]").replace('path = "out"', 'path = "others"')
    (folder / "job.toml").write_text(other)
    pq.write_table(rows(range(20, 22)), folder / "in" / "A" / "more.parquet")
    assert once()["queries"].keys() == {"others"}


def test_what_is_none_of_its_format_is_a_dead_letter(folder: Path) -> None:
    (folder / "in" / "B" / "bad.csv").write_text("k,ts,v\n1,1970-01-01 00:00:01\n2,never,1\n3,1970-01-01,1,2\n")
    (folder / "in" / "C" / "bad.json").write_text('rubbish\n[1]\n{"k": 1.5, "ts": "1970-01-01", "v": 1}\n\n{"k": 1}\n')
    once()
    with ms.Engine(checkpoint=folder / "ckpt") as engine:
        assert engine.dead_letters["B"]["ts"].to_pylist() == ["never", "1970-01-01"]
        dead = engine.dead_letters["C"].to_pylist()
    assert [row["_corrupt_record"] for row in dead] == ["rubbish", "[1]", None, None]
    assert dead[2]["k"] == "1.5"


def test_an_open_quote_is_its_line_s_dead_letter_and_takes_no_other_line_along(folder: Path) -> None:
    """Arrow takes what follows for its value, and drops lines where that is more than a block."""
    many = 100_000
    lines = [f"{k},1970-01-01 00:00:01,{k}\n" for k in range(many)]
    lines[7] = '7,"1970-01-01 00:00:01,7\n'
    lines[8] = '8,"1970-01-01 00:00:01","8"\n'
    (folder / "in" / "B" / "open.csv").write_text("k,ts,v\n" + "".join(lines))
    once()
    with ms.Engine(checkpoint=folder / "ckpt") as engine:
        (dead,) = engine.dead_letters["B"].to_pylist()
        assert "a quote is opened in the line and not closed" in dead["_reason"]
        assert engine.report().streams["B"].rows >= many - 1


def test_numbers_of_json_lose_no_digit(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(
        '{"k": 9223372036854775807, "d": 12345678901234567890.123456789, "ts": "1970-01-01", "l": [1], "b": true}'
    )
    text = f"""
        checkpoint = "{tmp_path}/ckpt"
        [streams.A]
        format = "json"
        path = "{tmp_path}/in"
        schema = "k BIGINT, d DECIMAL(38, 9), ts TIMESTAMP, l ARRAY<BIGINT>, b BOOLEAN"
        timestamp = "ts"
        [queries.q]
        sql = "SELECT A.k, A.d, A.b FROM A [RANGE 1 SECOND]"
        sink = {{ path = "{tmp_path}/out" }}"""
    with FileJob(parse_job(text)) as job:
        assert job.step()
    (file,) = (tmp_path / "out").glob("step=*/*.parquet")
    (row,) = pq.read_table(file).to_pylist()
    assert (row["k"], str(row["d"]), row["b"]) == (9223372036854775807, "12345678901234567890.123456789", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('format = "parquet"', 'format = "avro"'), ("avro", "--engine spark")),
        (('path = "in/A"', 'path = "hdfs://host/in"'), ("hdfs://host/in", "--engine spark")),
        (("maxFilesPerTrigger", "mergeSchema"), ("mergeschema", "--engine spark")),
        (('path = "in/A"', 'path = "nowhere"'), ("no files yet", "schema =")),
    ],
    ids=["another format", "another file system", "an option", "no columns"],
)
def test_what_only_spark_can_do_is_refused(folder: Path, change: tuple[str, str], words: tuple[str, ...]) -> None:
    (folder / "job.toml").write_text(JOB.replace(*change))
    process = start("--once")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert all(word in errors for word in ("[streams.A]", *words)), errors
    assert not (folder / "ckpt").exists()


def test_the_embedded_engine_has_no_master(folder: Path) -> None:
    process = start("--once", "--master", "local[2]")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--master" in errors


def test_other_streams_than_the_checkpoints_are_refused(folder: Path) -> None:
    once()
    (folder / "job.toml").write_text(
        JOB.replace("[streams.C]", "[streams.D]").replace("C.k", "D.k").replace("B, C", "B, D").replace("B) C", "B) D")
    )
    process = start("--once")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the checkpoint has the streams A, B, C" in errors


def test_what_was_noted_of_files_that_are_gone_is_forgotten(folder: Path) -> None:
    for number in range(20):
        pq.write_table(rows(range(20 + number, 21 + number)), folder / "in" / "A" / f"{number + 10}.parquet")
    with FileJob(parse_job(JOB)) as job:
        for step in range(33):
            for file in [] if step < 10 else list((folder / "in" / "A").glob("[1-9]*.parquet")):
                file.unlink()
            if not job.step():
                pq.write_table(rows(range(step, step + 1)), folder / "in" / "A" / f"{step + 100}.parquet")
                job.step()
        noted = len(list((folder / "ckpt" / "sources").glob("A/*")))
    assert noted < 20
    assert once()["step"] >= 32
