"""Saving and loading: everything comes back, also what waits for the next step."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.model.errors import CheckpointError, SinkError
from midstream.model.events import StateRebuilt
from tests.unit.building import both, engine, table

QUERIES = {
    "join": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS",
    "band": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.v < B.v WINDOW 9 SECONDS",
    "last": "SELECT COUNT(*) AS n, _ts FROM A [ROWS 2], B [ROWS 2] WHERE A.s = B.s EVERY 2 SECONDS",
    "left": "SELECT A.j, _ts FROM A [RANGE 4 SECONDS] EXCEPT ON (k) B [RANGE 2 SECONDS]",
}


def rows(step: int) -> dict[str, Any]:
    keys: dict[str, list[Any]] = {"k": [step % 2, None, 1], "s": ["é漢", "x", None], "v": [0.5, float("nan"), None]}
    times: list[float | None] = [step, step - 3, None]
    return both("AB", table(times, j=range(3 * step, 3 * step + 3), **keys))


def running(steps: int = 4) -> Any:
    made = engine("AB", lateness=1_000_000, lanes=2)
    for name, sql in QUERIES.items():
        made.add_query(name, sql)
    for step in range(steps):
        made.push(rows(step))
    return made


def as_texts(outputs: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: [str(row) for row in answer.to_pylist()] for name, answer in outputs.items()}


def test_an_engine_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    made = running()
    made.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    assert again.events == made.events
    assert as_texts(again.late) == as_texts(made.late)
    assert as_texts(again.dead_letters) == as_texts(made.dead_letters)
    assert made.late["A"].num_rows and made.dead_letters["B"].num_rows
    assert again.metrics()["comparisons"] == made.metrics()["comparisons"]
    assert again.metrics()["state_rows"] == made.metrics()["state_rows"]
    for step in range(4, 12):
        assert as_texts(again.push(rows(step))) == as_texts(made.push(rows(step))), step
    assert again.events == made.events


def test_commands_that_wait_are_saved_too(tmp_path: Path) -> None:
    made = running()
    made.drop_query("band")
    made.add_query("new", "SELECT A.k FROM A", plan="A")
    made.migrate("join", "(B A)")
    made.rescale(3)
    made.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    assert again.manifest.pending == made.manifest.pending
    one, other = made.push(rows(4)), again.push(rows(4))
    assert as_texts(one) == as_texts(other)
    assert set(one) == {"join", "last", "left", "new"}
    assert again.manifest.lanes == 3


def test_a_new_engine_can_be_saved(tmp_path: Path) -> None:
    made = engine("A")
    made.add_query("q", "SELECT A.k FROM A")
    made.save(tmp_path / "saved")
    assert ms.Engine.load(tmp_path / "saved").push({"A": table([1], k=[5])})["q"].to_pylist() == [{"k": 5}]


def test_saving_again_replaces_the_former_save(tmp_path: Path) -> None:
    made = running(2)
    made.save(tmp_path / "saved")
    made.push(rows(2))
    made.save(tmp_path / "saved")
    assert ms.Engine.load(tmp_path / "saved").manifest.step == 2
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize("steps", [0, 2])
def test_the_checkpoint_of_a_job_is_not_saved_over(tmp_path: Path, steps: int) -> None:
    """Of a job that has done no step there is nothing but claims."""
    with ms.Engine(checkpoint=tmp_path / "job") as job:
        job.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        for step in range(steps):
            job.push({"A": table([step], k=[1])})
        before = sorted((tmp_path / "job").rglob("*"))
        for one in (running(1), job):
            with pytest.raises(CheckpointError, match="is not a saved engine") as caught:
                one.save(tmp_path / "job")
            assert caught.value.remedy == "save to a new folder"
        assert sorted((tmp_path / "job").rglob("*")) == before
    with pytest.raises(CheckpointError, match="is not a saved engine"):
        ms.Engine.load(tmp_path / "job")


def test_what_lies_beside_a_saved_engine_is_not_lost(tmp_path: Path) -> None:
    made = running(1)
    made.save(tmp_path / "saved")
    (tmp_path / "saved" / "results").mkdir()
    with pytest.raises(CheckpointError, match="it has 'results'"):
        made.save(tmp_path / "saved")
    assert ms.Engine.load(tmp_path / "saved").manifest.step == 0


def test_a_loaded_engine_saves_over_what_it_was_loaded_from(tmp_path: Path) -> None:
    made = running()
    for step in range(4, 8):
        made.save(tmp_path / "saved")
        made = ms.Engine.load(tmp_path / "saved")
        made.push(rows(step))
    whole = running(8)
    assert as_texts(made.push(rows(8))) == as_texts(whole.push(rows(8)))


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_save_that_is_cut_off_leaves_a_whole_one(tmp_path: Path, cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever rename is the last: what is loaded is the former engine or the new one."""
    made = running(2)
    made.save(tmp_path / "saved")
    made.push(rows(2))
    real, left = os.replace, [cut]

    def failing(source: Any, target: Any) -> None:
        if str(tmp_path / "saved") in (str(source), str(target)):
            left[0] -= 1
            if left[0] <= 0:
                raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", failing)
        if cut < 3:
            with pytest.raises(SinkError):
                made.save(tmp_path / "saved")
    step = ms.Engine.load(tmp_path / "saved").manifest.step
    assert step == 1
    made.save(tmp_path / "saved")
    assert ms.Engine.load(tmp_path / "saved").manifest.step == 2


def chunk_files(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    found = [path for path in sorted((folder / "store").rglob("*.arrow")) if wanted(path.name)]
    assert found
    return found


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_join_states_need_not_come_back_whole(tmp_path: Path, damage: str) -> None:
    made = running()
    made.save(tmp_path / "saved")
    for path in chunk_files(
        tmp_path / "saved", lambda name: ".rows" not in name and ".pending" not in name and name != "0-rows"
    ):
        if path.parent.name in ("A", "B"):
            continue  # late rows and dead letters
        path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1])
    again = ms.Engine.load(tmp_path / "saved")
    for step in range(4, 9):
        assert as_texts(again.push(rows(step))) == as_texts(made.push(rows(step)))
    assert [event for event in again.events if isinstance(event, StateRebuilt)]


def test_base_rows_must(tmp_path: Path) -> None:
    running().save(tmp_path / "saved")
    path = chunk_files(tmp_path / "saved", lambda name: ".rows" in name)[0]
    path.unlink()
    with pytest.raises(CheckpointError, match="is missing") as caught:
        ms.Engine.load(tmp_path / "saved")
    assert str(path) in caught.value.place
    assert caught.value.remedy


def test_a_query_and_a_stream_of_one_name_keep_their_dead_letters(tmp_path: Path) -> None:
    """Also on a checkpoint, and where the engine is saved and loaded."""

    def letters(made: ms.Engine) -> dict[str, list[str]]:
        return {name: one["_reason"].to_pylist() for name, one in made.dead_letters.items()}

    def push(made: ms.Engine) -> None:
        rows = [{"k": "bad", "s": "1", "ts": "2020-01-01"}, {"k": 1, "s": "x", "ts": "2020-01-01"}]
        made.push({"A": rows, "B": rows})

    unread, failed = "column 'k': cannot read 'bad' as int64", "cast(B.s) cannot be evaluated"
    expected = {"A": [unread], "B": [unread], "query A": [failed], "q": [failed]}
    with ms.Engine(checkpoint=tmp_path / "checkpoint", durable=False) as durable:
        for made in (ms.Engine(), durable):
            for name in "AB":
                made.create_stream(name, "k BIGINT, s VARCHAR, ts TIMESTAMP", timestamp="ts")
            for name in ("A", "q"):
                made.add_query(name, "SELECT CAST(s AS INT) AS n FROM B")
            push(made)
            assert letters(made) == expected
            made.save(tmp_path / "saved")
            again = ms.Engine.load(tmp_path / "saved")
            assert letters(again) == expected
            push(again)
            assert letters(again) == {name: found * 2 for name, found in expected.items()}
