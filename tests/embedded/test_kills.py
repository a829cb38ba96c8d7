"""The process of an engine is killed at every named point of a step; the sinks are as if it never was."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.manifest import Manifest
from midstream.pipeline.crash_points import POINTS
from midstream.storage.chunk_cache import FOLDER
from midstream.storage.files import FileStore
from midstream.storage.places import storage_at
from midstream.storage.sweep import sweep
from tests.crash_case import PLANS
from tests.embedded.crash_engine import CASE, main
from tests.forked import run
from tests.oracle.compare import assert_each_step_same


def run_and_kill(root: Path | str, point: str, program: str = "tests.embedded.crash_engine") -> None:
    done = run(program, root, MIDSTREAM_KILL_AT=point)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


def newest(root: Path) -> Manifest:
    found = ManifestLog(root / "checkpoint" / "manifests").latest()
    assert found is not None
    return found


def check(root: Path) -> None:
    for name, answer in CASE.expected().items():
        found = [
            pq.read_table(folder) if (folder := root / "answers" / name / f"step={n:08d}").is_dir() else None
            for n in range(len(CASE.steps))
        ]
        assert_each_step_same(found, answer, name)
    assert not list(root.glob("answers/*/_staging/**/*.parquet")), "staging was left behind"


def test_an_undisturbed_run(tmp_path: Path) -> None:
    main(tmp_path)
    check(tmp_path)


@pytest.mark.timeout(300)
def test_it_is_killed_at_every_point(tmp_path: Path) -> None:
    """One after the other on the same checkpoint, amid a migration, a rescale and changes of a spread over nodes."""
    published = POINTS.index("after_manifest")
    for at, point in enumerate(POINTS[: published + 1]):
        run_and_kill(tmp_path, f"{point}:1")
        assert newest(tmp_path).step == (1 if at == published else 0)
    for step, point in enumerate(POINTS[published:], start=2):
        run_and_kill(tmp_path, f"{point}:{step}")
        assert newest(tmp_path).step == step
    main(tmp_path)
    check(tmp_path)
    assert newest(tmp_path).lanes == 3
    assert newest(tmp_path).queries["chain"].plan == PLANS[1]
    assert newest(tmp_path).queries["spread"].nodes is None


def test_it_is_killed_on_an_object_store(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine keeps of it is lost, too, before the last start."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    log = ManifestLog(f"{bucket}/checkpoint/manifests")
    for step, point in enumerate(("before_manifest", "after_manifest", "before_sink"), start=1):
        run_and_kill(bucket, f"{point}:{step}")
        assert log.steps()[-1] == (step - 1 if point == "before_manifest" else step)
    monkeypatch.setenv(FOLDER, str(tmp_path / "another cache"))
    main(bucket)
    storage = storage_at(bucket)
    for name, answer in CASE.expected().items():
        found = []
        for step in range(len(CASE.steps)):
            folder = f"answers/{name}/step={step:08d}"
            files = [storage.read(f"{folder}/{file}") for file in storage.names(folder)]
            found.append(pa.concat_tables([pq.read_table(pa.BufferReader(file)) for file in files]) if files else None)
        assert_each_step_same(found, answer, name)
    assert not [name for name, _ in storage.walk("answers") if "_staging" in name and not name.endswith(".probe")]


def test_what_is_left_behind_is_swept(tmp_path: Path) -> None:
    """And nothing that a kept manifest lists: chunks that lie together in a file go when none of them is listed."""
    for point in ("after_chunks:1", "before_manifest:1", "after_chunks:2"):
        run_and_kill(tmp_path, point)
    main(tmp_path)
    log, store = ManifestLog(tmp_path / "checkpoint" / "manifests"), FileStore(tmp_path / "checkpoint" / "store")
    before = len(list(store.root.glob("**/*.arrow")))
    assert sweep(store.root, log.kept()).files > 0
    assert len(list(store.root.glob("**/*.arrow"))) < before
    for manifest in log.kept():
        for lane in manifest.lane_states.values():
            for listing in lane.states.values():
                assert sum(store.get(ref).num_rows for ref in listing.chunks) == sum(r.rows for r in listing.chunks)
