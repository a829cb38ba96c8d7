"""What happened in the steps of an embedded job is read once each, wherever it is written."""

from __future__ import annotations

from pathlib import Path

import midstream as ms
from midstream.checkpoint.event_log import STEPS_IN_A_FILE
from midstream.checkpoint.reader import Checkpoint
from tests.unit.building import table


def opened(path: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=path, durable=False)
    for name in ("A", "B"):
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    engine.add_query("join", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    return engine


def push(engine: ms.Engine, steps: int) -> None:
    for _ in range(steps):
        given = table([engine.manifest.step + 1], k=[1], v=[0.5])
        engine.push({name: given.select(["k", "ts", "v"]) for name in ("A", "B")})


def steps_done(path: Path, after: int = -1) -> list[int]:
    return [event["step"] for event in Checkpoint.open(path).events(after) if event["event"] == "step_done"]


def test_events_are_there_once_each_after_every_step(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        for step in range(2 * STEPS_IN_A_FILE + 3):
            push(engine, 1)
            assert steps_done(tmp_path) == list(range(step + 1))
            assert steps_done(tmp_path, after=step - 2) == list(range(max(step - 1, 0), step + 1))
            last = Checkpoint.open(tmp_path).last_events(12)
            assert [event["step"] for event in last][-1] == step
            everything = list(Checkpoint.open(tmp_path).events())
            assert last == everything[-12:]
            for count in (1, 2, STEPS_IN_A_FILE, 100):
                assert Checkpoint.open(tmp_path).last_events(count) == everything[-count:]
    assert Checkpoint.open(tmp_path).last_events(0) == []
    assert len(list((tmp_path / "events").iterdir())) == 3, "a file for several steps"


def test_events_are_kept_over_a_restart_and_those_of_steps_given_up_are_not(tmp_path: Path) -> None:
    for _ in range(3):
        with opened(tmp_path) as engine:
            push(engine, 5)
    assert steps_done(tmp_path) == list(range(15))
    ms.open(tmp_path).rewind(10)
    assert steps_done(tmp_path) == list(range(11))
    with opened(tmp_path) as engine:
        push(engine, 3)
        assert steps_done(tmp_path) == list(range(14))
        push(engine, 12)
    assert steps_done(tmp_path) == list(range(26))


def test_a_fork_begins_without_the_events_of_the_job_it_was_forked_from(tmp_path: Path) -> None:
    with opened(tmp_path / "job") as engine:
        push(engine, 4)
    ms.open(tmp_path / "job").savepoint("here")
    ms.open(tmp_path / "job").fork("here", tmp_path / "fork")
    assert steps_done(tmp_path / "fork") == []
    with opened(tmp_path / "fork") as engine:
        push(engine, 8)
    assert steps_done(tmp_path / "fork") == list(range(4, 12))
