"""What it costs to give a job many queries at once: every command is taken once, whatever waits before it."""

from __future__ import annotations

from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.commands.add_query import AddQuery
from midstream.units.draft import Draft
from tests.unit.building import table

MANY = 12


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queries that were applied to some draft, in order."""
    names, apply = list[str](), AddQuery.apply

    def noted(command: AddQuery, draft: Draft) -> None:
        names.append(command.query)
        apply(command, draft)

    monkeypatch.setattr(AddQuery, "apply", noted)
    return names


def opened(checkpoint: Path) -> ms.Engine:
    made = ms.Engine(checkpoint=checkpoint)
    for stream in "AB":
        made.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.push({})
    return made


def sql(number: int) -> str:
    return f"SELECT A.k FROM A, B WHERE A.k = B.k AND A.k < {number} WINDOW 9 SECONDS"


def test_queries_added_to_an_engine_are_each_taken_once_before_the_step(tmp_path: Path, taken: list[str]) -> None:
    with opened(tmp_path / "checkpoint") as made:
        for number in range(MANY):
            made.add_query(f"q{number}", sql(number))
        assert len(taken) == MANY


def test_queries_that_wait_in_the_log_are_each_taken_once_with_the_step(tmp_path: Path, taken: list[str]) -> None:
    with opened(tmp_path / "checkpoint") as made:
        log = Folders(str(tmp_path / "checkpoint")).commands
        for number in range(MANY):
            log.append(AddQuery(f"q{number}", sql(number)))
        taken.clear()
        given = table([1, 2], k=[1, 2])
        answers = made.push({"A": given, "B": given})
        assert len(taken) == MANY
        assert [answers[f"q{number}"].num_rows for number in range(4)] == [0, 0, 1, 2]


def test_of_two_queries_of_one_name_the_first_is_taken(tmp_path: Path) -> None:
    with opened(tmp_path / "checkpoint") as made:
        log = Folders(str(tmp_path / "checkpoint")).commands
        log.append(AddQuery("same", sql(1)))
        log.append(AddQuery("same", sql(2)))
        made.push({})
        assert made.manifest.queries["same"].sql == sql(1)
        assert "there is already a query 'same'" in str([event for event in made.events if "Refused" in repr(event)])
