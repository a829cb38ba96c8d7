"""Whether a job runs, as whoever reads its checkpoint judges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.epochs import EpochClaim, Holder
from midstream.checkpoint.liveness import Liveness, failure_text, liveness
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.model.errors import WriteError
from midstream.model.step_time import StepTime

HERE = Holder.here()
ELSEWHERE = Holder("db1", 7, "another boot", "12")
CLAIM = EpochClaim(3, "token", HERE, claimed=1_000.0)
STEP = StepTime(5, ended=1_500.0, seconds=0.1)

CASES = {
    "an engine that was saved": (None, None, Liveness("saved")),
    "a process that is there": (CLAIM, STEP, Liveness("running", 1_000.0, holder=str(HERE))),
    "a process that is gone": (
        replace(CLAIM, holder=replace(HERE, started="0")),
        STEP,
        Liveness("failed", 1_500.0, "it was killed, or its machine was", str(HERE)),
    ),
    "one that is gone before its first step": (
        replace(CLAIM, holder=replace(HERE, started="0")),
        replace(STEP, ended=900.0),
        Liveness("failed", 1_000.0, "it was killed, or its machine was", str(HERE)),
    ),
    "one that ended in order": (
        replace(CLAIM, released=True, ended=1_600.0),
        STEP,
        Liveness("stopped", 1_600.0, holder=str(HERE)),
    ),
    "one that failed": (
        replace(CLAIM, released=True, ended=1_600.0, failure="WriteError: no space"),
        STEP,
        Liveness("failed", 1_600.0, "WriteError: no space", str(HERE)),
    ),
    "another machine's, lately": (
        replace(CLAIM, holder=ELSEWHERE),
        replace(STEP, ended=1_990.0),
        Liveness("running", 1_000.0, holder="process 7 on db1"),
    ),
    "another machine's, long silent": (
        replace(CLAIM, holder=ELSEWHERE),
        STEP,
        Liveness("unknown", 1_500.0, holder="process 7 on db1"),
    ),
    "another machine's, silent within its trigger": (
        replace(CLAIM, holder=ELSEWHERE),
        replace(STEP, interval=100.0),
        Liveness("running", 1_000.0, holder="process 7 on db1"),
    ),
    "of before times were noted": (
        replace(CLAIM, holder=ELSEWHERE, claimed=None),
        None,
        Liveness("unknown", holder="process 7 on db1"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_how_a_job_is(case: str) -> None:
    claim, newest, expected = CASES[case]
    assert liveness(claim, newest, now=2_000.0) == expected


def test_every_state_has_a_sentence() -> None:
    sentences = {found.sentence(2_000.0) for _, _, found in CASES.values()}
    assert {one.split(" (")[0] for one in sentences} == {
        "not started: a saved engine, or a fork",
        "failed less than 16.7 min ago: it was killed, or its machine was",
        "failed 6.67 min ago: WriteError: no space",
        "failed less than 8.33 min ago: it was killed, or its machine was",
        "may be running on another machine, but it has reported no step",
        "may be running on another machine, but no step has ended for 8.33 min",
        "running for 16.7 min",
        "stopped 6.67 min ago",
    }


def test_a_reason_is_one_line_of_bounded_length() -> None:
    assert failure_text(WriteError("no space", place="/data", remedy="make some")) == "no space (at /data)"
    assert failure_text(OSError("no space\nleft")) == "OSError: no space"
    assert len(failure_text(ValueError("x" * 9_999))) == 1_000
    assert failure_text(ValueError()) == "ValueError"


def opened(folder: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=folder)
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("all", "SELECT A.k FROM A")
    engine.push({})
    return engine


def status(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["status", str(folder), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_an_engine_runs_ends_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.time()
    with opened(tmp_path / "ckpt"):
        found = status(tmp_path / "ckpt", capsys)
        assert found["state"] == "running" and begun <= float(str(found["since"])) <= time.time()
        assert found["process"] == f"process {os.getpid()} on {HERE.host}"
    assert status(tmp_path / "ckpt", capsys)["state"] == "stopped"
    with pytest.raises(ZeroDivisionError), opened(tmp_path / "ckpt"):
        _ = 1 / 0
    assert status(tmp_path / "ckpt", capsys)["reason"] == "ZeroDivisionError: division by zero"
    assert main(["status", str(tmp_path / "ckpt")]) == 0
    assert capsys.readouterr().out.startswith("failed ")


def test_a_process_that_was_killed(tmp_path: Path) -> None:
    program = f"""if True:
        import os, signal
        from tests.unit.checkpoint.test_liveness import Path, opened
        opened(Path({str(tmp_path / "ckpt")!r}))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", program], check=False, env={**os.environ, **paths})
    assert ended.returncode == -signal.SIGKILL
    found = Checkpoint.open(tmp_path / "ckpt").liveness()
    assert (found.state, found.reason) == ("failed", "it was killed, or its machine was")


def test_a_command_to_a_job_that_does_not_run_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tmp_path / "ckpt").close()
    assert main(["rescale", str(tmp_path / "ckpt"), "--lanes", "3"]) == 0
    assert "the job takes it when you start it again. State of the job: stopped" in capsys.readouterr().out
    assert main(["rescale", str(tmp_path / "ckpt"), "--lanes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job"] == "stopped"
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        assert main(["rescale", str(tmp_path / "ckpt"), "--lanes", "4"]) == 0
        assert "the job takes it with its next step" in capsys.readouterr().out
        engine.push({})
        assert engine.manifest.lanes == 4


def test_stop_asks_once_and_a_later_run_is_not_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = str(tmp_path / "ckpt")
    with opened(tmp_path / "ckpt") as engine:
        assert main(["stop", checkpoint, "--wait", "0"]) == 1
        assert "the job has not ended after 0 seconds: running" in capsys.readouterr().err
        assert not engine.stop_requested
        engine.push({})
        assert engine.stop_requested
        assert main(["stop", checkpoint, "--wait", "0"]) == 1
    capsys.readouterr()
    assert main(["stop", checkpoint]) == 0
    assert capsys.readouterr().out.startswith("nothing to stop: stopped ")
    assert main(["stop", checkpoint, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stopped"] is False
    with ms.Engine(checkpoint=checkpoint) as later:
        later.push({})
        assert not later.stop_requested
        assert later.manifest.last_command == 2 and "command_refused" not in {event.kind for event in later.events}
