"""States in files: what is lost and can be computed again is, and says so; base rows cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.migrate import Migrate
from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError
from midstream.model.events import MigrationEnded, StateRebuilt, StepDone
from midstream.model.manifest import Manifest
from midstream.step.fold import StepResult, step
from midstream.storage import files as store_files
from midstream.storage.files import FileStore
from tests.unit.building import both, schemas, table

QUERIES = {
    "three": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.s = C.s WINDOW 9 SECONDS",
    "band": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.v <= B.v WINDOW 9 SECONDS",
    "count": "SELECT COUNT(*) AS n, _ts FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS EVERY 1 SECOND",
    "left": "SELECT A.j, _ts FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 2 SECONDS]",
}


def rows(number: int) -> dict[str, pa.Table]:
    keys: dict[str, list[Any]] = {"k": [number % 2, None, 1], "s": ["x", "y", None], "v": [0.5, 1.0, None]}
    return both("ABC", table([number, number, number + 0.5], j=range(3 * number, 3 * number + 3), **keys))


class Fold:
    """Steps over chunks in files."""

    def __init__(self, root: Path, *names: str) -> None:
        self.store = FileStore(root)
        self.manifest = Manifest(streams=schemas("ABC"))
        self.answers: Counter[str] = Counter()
        self.push(0, *(AddQuery(name, QUERIES[name]) for name in names))

    def push(self, number: int, *commands: Command) -> StepResult:
        done = step(self.manifest, rows(number), commands, self.store)
        self.manifest = done.manifest
        for name, answer in done.results.items():
            self.answers.update(f"{name} {row}" for row in answer.to_pylist())
        return done

    def files(self, *, base: bool) -> list[Path]:
        """The files of all listed chunks of base rows, or of all others."""
        found = []
        for lane in self.manifest.lane_states.values():
            for state, listing in lane.states.items():
                if state.endswith(".rows") == base:
                    found += [self.store.root / f"{ref.name}.arrow" for ref in listing.chunks]
        return found


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    opened = store_files._opened()
    store_files.forget_opened([*opened._batches, *opened._verified])


def harm(paths: list[Path], how: str) -> None:
    """As a disk would: behind the back of a process that has just begun."""
    store_files.forget_opened(map(str, paths))
    for path in paths:
        if how == "missing":
            path.unlink()
        elif how == "cut":
            path.write_bytes(path.read_bytes()[:-8])
        else:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "how"),
    [*((name, "missing") for name in QUERIES), ("three", "cut"), ("left", "flipped"), ("all", "flipped")],
)
def test_a_lost_join_state_is_computed_again(tmp_path: Path, name: str, how: str) -> None:
    names = tuple(QUERIES) if name == "all" else (name,)
    hurt, whole = Fold(tmp_path / "hurt", *names), Fold(tmp_path / "whole", *names)
    for number in range(1, 6):
        hurt.push(number)
        whole.push(number)
    harm(hurt.files(base=False), how)
    done = hurt.push(6)
    whole.push(6)
    rebuilt = [event for event in done.events if isinstance(event, StateRebuilt)]
    assert rebuilt
    assert all(event.rows > 0 and event.step == 6 for event in rebuilt)
    assert {event.state for event in rebuilt} <= {s for lane in hurt.manifest.lane_states.values() for s in lane.states}
    for number in range(7, 14):
        assert not [e for e in hurt.push(number).events if isinstance(e, StateRebuilt)], "once"
        whole.push(number)
    assert hurt.answers == whole.answers
    assert sum(whole.answers.values())


def test_each_state_can_be_lost_by_itself(tmp_path: Path) -> None:
    whole = Fold(tmp_path / "whole", *QUERIES)
    for number in range(1, 9):
        whole.push(number)
    hurt = Fold(tmp_path / "hurt", *QUERIES)
    for number in range(1, 4):
        hurt.push(number)
    before, answers, lanes = hurt.manifest, Counter(hurt.answers), hurt.manifest.lane_states
    states = sorted((lane, s) for lane in lanes for s in lanes[lane].states if not s.endswith(".rows"))
    assert len(states) > 6
    for lane, state in states:
        paths = [hurt.store.root / f"{ref.name}.arrow" for ref in lanes[lane].states[state].chunks[:1]]
        kept = {path: path.read_bytes() for path in paths}
        harm(paths, "missing")
        hurt.manifest, hurt.answers = before, Counter(answers)
        for number in range(4, 9):
            hurt.push(number)
        assert hurt.answers == whole.answers, state
        for path, content in kept.items():
            path.write_bytes(content)


def test_the_work_of_rebuilding_is_reported(tmp_path: Path) -> None:
    fold = Fold(tmp_path, "three")
    fold.push(1)
    fold.push(2)
    quiet = next(e for e in fold.push(3).events if isinstance(e, StepDone)).comparisons
    harm(fold.files(base=False), "missing")
    events = fold.push(4).events
    rebuilt = [event for event in events if isinstance(event, StateRebuilt)]
    assert sum(event.comparisons for event in rebuilt) > 0
    assert next(e for e in events if isinstance(e, StepDone)).comparisons > quiet
    (joined,) = [event for event in rebuilt if event.state.startswith("A+B.")]
    assert joined.comparisons > 0


def test_a_state_lost_in_the_step_of_a_migration(tmp_path: Path) -> None:
    hurt, whole = Fold(tmp_path / "hurt", "three"), Fold(tmp_path / "whole", "three")
    for fold in (hurt, whole):
        for number in range(1, 5):
            fold.push(number)
    harm(hurt.files(base=False), "missing")
    for fold in (hurt, whole):
        done = fold.push(5, Migrate("three", "(A (B C))", "moving_state"))
        assert [event.plan for event in done.events if isinstance(event, MigrationEnded)] == ["(A (B C))"]
        for number in range(6, 10):
            fold.push(number)
    assert hurt.answers == whole.answers


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_lost_base_rows_are_an_error_that_names_the_file(tmp_path: Path, how: str) -> None:
    fold = Fold(tmp_path, "three")
    fold.push(1)
    before = fold.manifest
    path = fold.files(base=True)[0]
    harm([path], how)
    with pytest.raises(CheckpointError) as caught:
        fold.push(2)
    assert caught.value.place == str(path)
    assert caught.value.remedy
    assert fold.manifest is before


def test_a_step_is_a_function_of_its_manifest_and_rows(tmp_path: Path) -> None:
    """Replayed, a step names the same chunks and gives the same results and events, in memory of nothing."""
    fold = Fold(tmp_path, *QUERIES)
    for number in range(1, 5):
        before = fold.manifest
        first = fold.push(number)
        again = step(before, rows(number), (), FileStore(tmp_path))
        assert again.manifest == first.manifest
        assert again.events == first.events
        assert {n: t.to_pylist() for n, t in again.results.items()} == {
            n: t.to_pylist() for n, t in first.results.items()
        }


def test_a_manifest_read_back_goes_on(tmp_path: Path) -> None:
    fold, other = Fold(tmp_path / "one", *QUERIES), Fold(tmp_path / "other", *QUERIES)
    for number in range(1, 8):
        fold.push(number)
        other.push(number)
        fold.manifest = decode(Manifest, encode(fold.manifest))
    assert fold.answers == other.answers
    assert fold.manifest == other.manifest
