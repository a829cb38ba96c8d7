"""An engine of many lanes, each of which is written as a part: killed, opened again, gone back, forked, swept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.model.manifest import MOST_INSIDE
from midstream.pipeline.crash_points import POINTS
from midstream.pipeline.doctor import examine
from midstream.storage.sweep import files_of
from tests.embedded.crash_engine_of_many_lanes import LANES, main
from tests.embedded.test_kills import check, newest, run_and_kill
from tests.unit.pipeline.test_opened import counted, rows
from tests.unit.pipeline.test_opened import start as few_lanes

PROGRAM = "tests.embedded.crash_engine_of_many_lanes"


@pytest.mark.timeout(600)
def test_it_is_killed_at_every_point(tmp_path: Path) -> None:
    published = POINTS.index("after_manifest")
    for at, point in enumerate(POINTS[: published + 1]):
        run_and_kill(tmp_path, f"{point}:1", PROGRAM)
        assert newest(tmp_path).step == (1 if at == published else 0)
    for step, point in enumerate(POINTS[published:], start=2):
        run_and_kill(tmp_path, f"{point}:{step}", PROGRAM)
        assert newest(tmp_path).step == step
    main(tmp_path)
    check(tmp_path)
    states = newest(tmp_path).lane_states
    assert newest(tmp_path).lanes == LANES + 1
    assert sum(state.part is not None for state in states.values()) > MOST_INSIDE
    assert not [one for one in examine(tmp_path / "checkpoint").findings if not one.harmless]


def start(checkpoint: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=checkpoint, durable=False, lanes=LANES, threads=LANES)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    engine.add_query("pairs", "SELECT A.k, A.v AS a, B.v AS b FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    return engine


def run(checkpoint: Path, steps: range) -> list[pa.Table]:
    with start(checkpoint) as engine:
        return [engine.push(rows(step))["pairs"] for step in steps]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Counter[tuple[int, ...]]]:
    """What an engine of two lanes says."""
    with few_lanes(tmp_path_factory.mktemp("few") / "ckpt") as engine:
        return [counted([engine.push(rows(step))["pairs"]]) for step in range(45)]


def whole(folder: Path) -> None:
    """Nothing is missing, and nothing is left that no kept step lists once it is swept."""
    assert not [one for one in examine(folder).findings if not one.harmless]
    folders = Folders(str(folder))
    folders.tidy(folders.manifests.kept()[-1])
    there = {str(path.relative_to(folder / "store")) for path in (folder / "store").rglob("*.arrow")}
    listing = set[str]().union(*map(files_of, folders.kept()))
    assert listing <= there
    assert all(state.part for state in folders.manifests.kept()[-1].lane_states.values())


def test_savepoints_rewinds_and_forks(tmp_path: Path, answers: list[Counter[tuple[int, ...]]]) -> None:
    ckpt, new = tmp_path / "ckpt", tmp_path / "new"
    assert [counted([one]) for one in run(ckpt, range(4))] == answers[:4]
    opened = ms.open(ckpt)
    assert opened.savepoint("early") == 3
    assert [counted([one]) for one in run(ckpt, range(4, 30))] == answers[4:30]
    whole(ckpt)
    assert ms.open(ckpt).state("rows of A", "early").arrow().num_rows == 12
    ms.open(ckpt).fork("early", new)
    ms.open(ckpt).rewind("early")
    assert [counted([one]) for one in run(ckpt, range(4, 45))] == answers[4:]
    whole(ckpt)
    assert [counted([one]) for one in run(new, range(4, 20))] == answers[4:20]
    whole(new)


def test_more_lanes_and_fewer(tmp_path: Path, answers: list[Counter[tuple[int, ...]]]) -> None:
    """Over the number of lanes from which on each is a part, and back."""
    found = []
    for step in range(12):
        with start(tmp_path / "ckpt") as engine:
            if step in (3, 8):
                engine.rescale(2 if step == 3 else LANES)
            found.append(counted([engine.push(rows(step))["pairs"]]))
            parts = sum(state.part is not None for state in engine.manifest.lane_states.values())
            assert parts == (0 if 3 <= step < 8 else LANES), step
    assert found == answers[:12]
