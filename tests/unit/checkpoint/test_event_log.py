"""Which of the files that drivers have left in the log of events count, and which are removed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from midstream.checkpoint import event_log
from midstream.checkpoint.event_log import EventLog
from midstream.model.events import LanesRescaled
from midstream.model.time_line import Epoch, TimeLine
from midstream.storage.local import LocalStorage

FIRST = TimeLine("j", (Epoch(1, "a", 0),))
BACK = TimeLine("j", (Epoch(1, "a", 0), Epoch(2, "b", 3, abandoned=5)))
"""The job went back to step 2, and an epoch began that does steps from 3 on again."""

LATER = TimeLine("j", (*BACK.epochs, Epoch(3, "c", 5)))


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(LocalStorage(tmp_path))


def write(log: EventLog, line: TimeLine, steps: Iterable[int], lanes: int) -> None:
    for step in steps:
        log.write(step, line, [LanesRescaled(step, 1, lanes)])


def read(log: EventLog, line: TimeLine, last: int, after: int = -1) -> list[tuple[int, int]]:
    found = [(event["step"], event["new"]) for event in log.read(line, last, after)]
    newest = [(event["step"], event["new"]) for event in log.newest(line, last, 100)]
    assert found == [pair for pair in newest if pair[0] > after]
    return found


def test_of_a_step_that_was_done_in_several_epochs_the_one_that_counts_is_read(log: EventLog) -> None:
    write(log, FIRST, range(6), lanes=1)
    write(log, BACK, range(3, 5), lanes=2)
    write(log, LATER, range(5, 7), lanes=3)
    assert read(log, FIRST, 5) == [(step, 1) for step in range(6)], "a driver that does not know of the others"
    assert read(log, BACK, 4) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert read(log, LATER, 6, after=1) == [(2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]
    assert [event["step"] for event in log.newest(LATER, 6, 3)] == [4, 5, 6]


def test_a_step_that_no_manifest_has_yet_has_no_events(log: EventLog) -> None:
    """Its driver was killed, or is just about to publish it."""
    write(log, FIRST, range(6), lanes=1)
    assert read(log, FIRST, 4) == [(step, 1) for step in range(5)]


def test_steps_given_up_that_nobody_has_done_again_have_no_events(log: EventLog) -> None:
    """Also where later ones are there: a file has the events of several steps."""
    write(log, FIRST, range(6), lanes=1)
    write(log, BACK, [6], lanes=2)
    assert read(log, BACK, 6) == [(0, 1), (1, 1), (2, 1), (6, 2)]


def test_steps_of_epochs_that_are_forgotten_count_as_the_last_of_them_left_them(log: EventLog) -> None:
    write(log, FIRST, range(6), lanes=1)
    write(log, BACK, range(3, 5), lanes=2)
    write(log, LATER, range(5, 7), lanes=3)
    forgetful = TimeLine("j", LATER.epochs[2:])
    assert read(log, forgetful, 6) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]


def test_what_does_not_count_is_removed_but_for_what_a_later_driver_may_be_writing(log: EventLog) -> None:
    write(log, FIRST, range(6), lanes=1)
    write(log, BACK, range(3, 5), lanes=2)
    write(log, LATER, range(5, 7), lanes=3)
    given_up = [f"000001-{step:012d}.jsonl" for step in (3, 4, 5)]
    assert log.overdue(BACK, 4) == given_up
    log.tidy(BACK, 4)
    assert set(log.storage.names()).isdisjoint(given_up)
    assert read(log, LATER, 6) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]


def test_events_of_long_ago_are_removed_when_a_driver_begins_and_with_every_step(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "STEPS_KEPT", 3)
    write(log, FIRST, range(6), lanes=1)
    for step in (5, 6, 9, 10):
        write(log, FIRST, range(step, step + 1), lanes=1)
        log.tidy(FIRST, step)
        kept = sorted(int(name[7:-6]) for name in log.storage.names())
        assert min(kept) == min(at for at in (3, 4, 5, 6, 9, 10) if at > step - 3)
        assert kept[-1] == step
