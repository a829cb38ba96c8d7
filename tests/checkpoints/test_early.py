"""A checkpoint of any format that was ever committed is taken up and goes on exact, and is not touched before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.model.manifest import FORMAT_VERSION, READABLE
from tests.checkpoints.course import fingerprint
from tests.checkpoints.early import courses
from tests.checkpoints.kept import archives, unpack
from tests.checkpoints.test_taken_up import check_against_the_oracle, go_on

COURSES = courses()
EARLY = [(version, name) for version, name in archives() if "_at_" in name and "spark" not in name]
every_one = pytest.mark.parametrize(("version", "name"), EARLY)


@every_one
def test_it_goes_on_exact(version: int, name: str, tmp_path: Path) -> None:
    course, kept = COURSES[name.partition("_at_")[0]], unpack(name, tmp_path, version)
    assert fingerprint(course.case.steps) == kept.notes["input"], "the rows are no longer those it was made of"
    engine = ms.Engine.load(kept.checkpoint)
    found = go_on(course, engine)
    whole = {query: {**steps, **found.get(query, {})} for query, steps in kept.answers.items()}
    check_against_the_oracle(course, whole, engine, since=course.saved if version == 1 else 0)


@every_one
def test_it_is_reported_and_not_touched(
    version: int, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = unpack(name, tmp_path, version)
    before = _bytes(kept.checkpoint)
    assert main(["status", str(kept.checkpoint), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["step"] == COURSES[name.partition("_at_")[0]].saved - 1
    moving = {query for query, told in report["queries"].items() if told["migration"]}
    assert COURSES[name.partition("_at_")[0]].under_way <= moving
    for query in report["queries"]:
        assert main(["explain", str(kept.checkpoint), query, "--analyze"]) == 0
    assert _bytes(kept.checkpoint) == before


@every_one
def test_the_first_write_brings_it_to_the_present_format(version: int, name: str, tmp_path: Path) -> None:
    kept = unpack(name, tmp_path, version)
    assert _formats(kept.checkpoint) == {version}
    ms.Engine.load(kept.checkpoint).save(kept.checkpoint)
    assert _formats(kept.checkpoint) == {FORMAT_VERSION}


def test_every_format_there_ever_was_is_kept() -> None:
    assert {version for version, _ in EARLY} == READABLE == set(range(1, FORMAT_VERSION + 1))


def _bytes(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _formats(checkpoint: Path) -> set[int]:
    return {json.loads(path.read_text())["format"] for path in (checkpoint / "manifests").glob("*.json")}
