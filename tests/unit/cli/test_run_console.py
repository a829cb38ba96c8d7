"""What a job tells while it runs, and its status shown again and again."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import midstream as ms
from midstream.cli import run_console
from midstream.cli.main import main
from midstream.cli.run_console import RunConsole
from midstream.model.events import StepDelayed
from tests.unit.building import table

PAIRS = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS"


def opened(checkpoint: Path | None = None) -> ms.Engine:
    engine = ms.Engine(checkpoint=checkpoint)
    for stream in "AB":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("pairs", PAIRS)
    engine.push({"A": table([1, 2], k=[1, 2]), "B": table([2], k=[1])})
    return engine


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_all_that_happens_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    engine = opened()
    with RunConsole(quiet=False, doing="waiting for files") as shown:
        shown.report(engine)
        assert lines(capsys) == ["step 0: query pairs starts with plan (A B) and sees all rows"]
        engine.migrate("pairs", "(B A)", "moving_state")
        engine.push({})
        shown.report(engine)
        shown.report(engine)
        begun, ended = lines(capsys)
        assert begun == "step 1: query pairs begins to move from (A B) to (B A) by moving_state"
        assert ended.startswith("step 1: query pairs runs by (B A); moving_state cost ")
        engine.push({"A": table([3], k=[9])})
        shown.report(engine)
        assert lines(capsys) == [], "a step is no news"


def test_a_change_of_lanes_is_told_in_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = opened(tmp_path / "ckpt")
    engine.rescale(4)
    with RunConsole(quiet=False, doing="waiting for files") as shown:
        shown.report(engine)
        lines(capsys)
        engine.push({"A": table([3], k=[9])})
        shown.report(engine)
        rescaled, rebuilt = lines(capsys)
        assert rescaled == "step 1: 4 lanes, before: 1"
        assert rebuilt.endswith(" from the rows of their streams") and "damaged" not in rebuilt


def test_a_line_of_life_where_nothing_is_renewed_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_console, "PLAIN_EVERY", 0.0)
    engine = opened()
    with RunConsole(quiet=False, doing="waiting for files") as shown:
        shown.report(engine)
        shown.report(engine)
        _, life = lines(capsys)
        assert life.startswith("step 0 · ") and " rows/s · " in life
        engine.push({"A": table([3], k=[9])})
        shown.report(engine, StepDelayed(2, "no space left", 3))
        assert lines(capsys) == ["step 2 could not be done and was tried 3 times: no space left"]


def test_a_start_and_a_step_under_way_are_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ms.Engine()
    with RunConsole(quiet=False, doing="starting Spark") as shown:
        shown.begin("starting Spark")
        assert lines(capsys) == ["starting Spark"]
        shown.report(engine)
        assert lines(capsys) == [], "no step has begun"
        engine._times.begin(0, 1_036_222)
        shown.report(engine)
        assert lines(capsys) == ["step 0 begins"]
        monkeypatch.setattr(shown, "_due", 0.0)
        shown.report(engine)
        assert re.fullmatch(r"step 0: 1,036,222 rows, .* so far", *lines(capsys))


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_console, "PLAIN_EVERY", 0.0)
    with RunConsole(quiet=True, doing="waiting for files") as shown:
        shown.report(opened())
    assert lines(capsys) == []


def test_a_job_is_watched_until_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = opened(tmp_path / "ckpt")
    threading.Timer(0.6, engine.close).start()
    assert main(["status", str(tmp_path / "ckpt"), "--watch", "--every", "0.2"]) == 0
    first, *_, last = lines(capsys)
    assert first.startswith("running") and last.startswith("stopped")
    assert main(["status", str(tmp_path / "ckpt"), "--watch", "--json"]) == 0
    (value,) = map(json.loads, lines(capsys))
    assert (value["state"], value["step"]) == ("stopped", 0)


def test_on_a_terminal_the_whole_screen_is_renewed(tmp_path: Path) -> None:
    engine = opened(tmp_path / "ckpt")
    ours, its = pty.openpty()
    watching = subprocess.Popen(
        [sys.executable, "-m", "midstream", "status", str(tmp_path / "ckpt"), "--watch", "--every", "0.2"],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(its)
    seen, deadline = b"", time.monotonic() + 60
    try:
        while b"pairs" not in seen and time.monotonic() < deadline:
            seen += _read(ours)
        assert b"running" in seen and b"\x1b[?1049h" in seen, "the alternate screen"
        engine.close()
        while watching.poll() is None and time.monotonic() < deadline:
            seen += _read(ours)
        assert watching.wait(10) == 0
        assert b"stopped" in seen.rpartition(b"\x1b[?1049l")[2], "how it ended stays on the screen"
    finally:
        watching.kill()
        os.close(ours)


def _read(terminal: int) -> bytes:
    polled = select.poll()  # Unlike select, it takes descriptors beyond 1,023.
    polled.register(terminal, select.POLLIN)
    if not polled.poll(200):
        return b""
    try:
        return os.read(terminal, 65_536)
    except OSError:  # The other side has gone.
        time.sleep(0.05)
        return b""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["doctor", "ckpt"], b"examining "),
        (["fork", "ckpt", "0", "new"], b"copying the state of 0"),
        (["state", "ckpt"], b"reading the states"),
    ],
)
def test_what_may_take_long_shows_that_it_goes_on(
    command: list[str], shown: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened(tmp_path / "ckpt").close()
    assert shown in on_a_terminal(command)


def on_a_terminal(command: list[str]) -> bytes:
    """What a command writes to a terminal."""
    ours, its = pty.openpty()
    paths = os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))
    running = subprocess.Popen(
        [sys.executable, "-m", "midstream", *command],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**os.environ, "PYTHONPATH": paths, "TERM": "xterm"},
    )
    os.close(its)
    seen = b""
    while running.poll() is None:
        seen += _read(ours)
    seen += _read(ours)
    os.close(ours)
    assert running.returncode == 0, seen
    return seen
