"""Of a job with many lanes each lane is written as a part: what a step writes, how it is read, swept and missed."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.manifest_file import written
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import LanesRescaled
from midstream.model.ids import LaneId, OperatorId
from midstream.model.manifest import MOST_INSIDE, LanePart, LaneState, Manifest
from midstream.pipeline.doctor import examine
from midstream.runtime.result_operator import Answer
from midstream.state.chunk_store import file_of
from midstream.step.lane_report import decode_lanes, encode_lanes
from midstream.storage.files import FileStore
from midstream.storage.sweep import Sweeper, files_of, listed, sweep
from midstream.storage.write_back import WriteBackStore
from midstream.units.lane_load import state_rows
from midstream.units.lane_step import LaneOutput
from tests.unit.checkpoint.test_manifest_differences import lane_of, touched
from tests.unit.checkpoint.test_manifest_differences import wide as begun

LANES = MOST_INSIDE + 8


def wide(lanes: int) -> Manifest:
    return replace(begun(lanes), step=0)


def in_parts(store: FileStore, manifest: Manifest) -> Manifest:
    """The manifest with each lane that has no part yet written as one."""
    return WriteBackStore(store).written(manifest)


def parts(manifest: Manifest) -> list[LanePart | None]:
    return [state.part for state in manifest.lane_states.values()]


def started(root: Path, lanes: int = LANES) -> tuple[Writer, FileStore, Manifest]:
    writer, store = Writer.take(ManifestLog(root / "manifests")), FileStore(root / "store")
    return writer, store, writer.begin(in_parts(store, wide(lanes)))


def next_step(writer: Writer, store: FileStore, manifest: Manifest, lanes: list[int]) -> Manifest:
    after = in_parts(store, touched(manifest, lanes, manifest.step + 1))
    writer.commit(after)
    return after


def test_few_lanes_stand_in_the_manifest(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store")
    assert set(parts(in_parts(store, wide(MOST_INSIDE)))) == {None}
    assert not (tmp_path / "store").exists()
    assert None not in parts(in_parts(store, wide(MOST_INSIDE + 1)))


def test_lanes_are_counted_by_group(tmp_path: Path) -> None:
    manifest = wide(LANES)
    alone = {LaneId("single", 0): lane_of(0, 0), **manifest.lane_states}
    found = in_parts(FileStore(tmp_path / "store"), replace(manifest, lane_states=alone))
    assert [lane.group for lane, state in found.lane_states.items() if state.part is None] == ["single"]


def test_a_step_writes_the_lanes_that_it_changed(tmp_path: Path) -> None:
    writer, store, first = started(tmp_path)
    second = next_step(writer, store, first, [3, 5])
    differ = [n for n, (one, other) in enumerate(zip(parts(first), parts(second), strict=True)) if one != other]
    assert differ == [3, 5]
    (file,) = {file_of(part.name) for part in (parts(second)[3], parts(second)[5]) if part is not None}
    assert (tmp_path / "store" / file).stat().st_size < 10_000


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """Also by a reader that had read a step before, of which it knows most lanes."""
    draw = random.Random(7)
    writer, store, manifest = started(tmp_path)
    reader, known = ManifestLog(tmp_path / "manifests"), {manifest.step: manifest}
    for step in range(1, 13):
        manifest = next_step(writer, store, manifest, draw.sample(range(LANES), draw.randrange(LANES)))
        known[step] = manifest
        found = reader.latest()
        assert found is not None and found == manifest and listings(found) == listings(manifest)
    for one in ManifestLog(tmp_path / "manifests").kept():
        assert one == known[one.step] and listings(one) == listings(known[one.step])


def listings(manifest: Manifest) -> list[object]:
    """What lanes hold, without a look at the names of their parts."""
    return [(lane, state.states, state.boxes) for lane, state in manifest.lane_states.items()]


def test_the_root_of_1000_lanes_with_rows_is_small(tmp_path: Path) -> None:
    """Each lane costs it a name; a whole manifest of these lanes has more than 2 MB."""
    writer, store, manifest = started(tmp_path, 1_000)
    for _ in range(4):
        before = set((tmp_path / "manifests").iterdir())
        manifest = next_step(writer, store, manifest, list(range(1_000)))
        (new,) = set((tmp_path / "manifests").iterdir()) - before
        assert new.stat().st_size < 150_000


class Counting:
    """A store that counts what is read."""

    def __init__(self, store: FileStore) -> None:
        self.store, self.read = store, 0

    def lane(self, part: LanePart) -> LaneState:
        self.read += 1
        return self.store.lane(part)


def reported(root: Path, lanes: int = LANES) -> tuple[dict[LaneId, LaneOutput], Mapping[LaneId, LaneOutput], Counting]:
    """What tasks found, what the driver knows of it, and the store in which it reads more."""
    store = FileStore(root / "store")
    states = in_parts(store, wide(lanes)).lane_states
    join = OperatorId("join", "q0")
    done = {
        lane: LaneOutput(state, {}, {join: Counters(lane.number, 2)}, {"q0": (join, OperatorId("source", "A"))})
        for lane, state in states.items()
    }
    counting = Counting(store)
    return done, decode_lanes(encode_lanes(done), counting), counting


def test_the_driver_reads_no_part_to_fold_a_step(tmp_path: Path) -> None:
    done, known, store = reported(tmp_path)
    before = replace(wide(LANES), lane_states={lane: output.state for lane, output in known.items()})
    after = replace(wide(LANES), lane_states={lane: output.state for lane, output in done.items()})
    assert state_rows(before) == state_rows(after) > 0
    assert files_of(before) == files_of(after) and len(files_of(before)) > LANES
    ManifestLog(tmp_path / "manifests").publish(before)
    assert known == done, "lanes of equal parts are equal"
    assert store.read == 0
    assert listed(before) == listed(after) and store.read == LANES


def test_what_lanes_report_is_read_as_it_was(tmp_path: Path) -> None:
    done, _, store = reported(tmp_path)
    lane, output = next(iter(done.items()))
    more = replace(
        output,
        events=(LanesRescaled(7, 1, 2),),
        rows_out={"q0": 3},
        rejected={"q0": 1},
        migrations={"q0": {"m": {"comparisons": 3}}},
    )
    assert decode_lanes(encode_lanes({**done, lane: more}), store) == {**done, lane: more}


def test_what_travels_to_tasks_is_the_name_of_a_part(tmp_path: Path) -> None:
    _, known, _ = reported(tmp_path)
    store = FileStore(tmp_path / "store")
    for output in known.values():
        assert output.state.part is not None
        unread = LaneState.unread(output.state.part, store)
        before = pickle.dumps(unread)
        assert unread.states  # It is read here, and travels as before.
        assert len(pickle.dumps(unread)) == len(before)
        assert pickle.loads(before).states == unread.states


def test_sweeps_keep_the_parts_of_kept_steps_and_savepoints(tmp_path: Path) -> None:
    writer, store, manifest = started(tmp_path)
    folders, sweeper = Folders(str(tmp_path)), Sweeper(store.storage)
    saved = None
    for step in range(1, 41):
        manifest = next_step(writer, store, manifest, [step % LANES, (7 * step) % LANES])
        if step == 3:
            # Its chunks are not there in this test, only its parts.
            saved = ManifestLog(tmp_path / "manifests").read(3)
            (tmp_path / "savepoints").mkdir()
            (tmp_path / "savepoints" / "kept.json").write_bytes(written(saved))
        if step % 8 == 0:
            writer.manifests.forget_older(manifest)
            sweeper.sweep((*writer.manifests.kept(), *folders.savepoints.all().values()))
    kept = (*ManifestLog(tmp_path / "manifests").kept(), folders.savepoints.read("kept"))
    assert folders.savepoints.read("kept") == saved
    sweep(tmp_path / "store", kept)
    there = {str(path.relative_to(tmp_path / "store")) for path in (tmp_path / "store").rglob("*.arrow")}
    named = {file_of(part.name) for one in kept for part in parts(one) if part is not None}
    assert there == named


@pytest.mark.parametrize("harm", ["missing", "damaged", "cut"])
def test_a_part_that_is_lost_is_told_with_the_way_out(harm: str, tmp_path: Path) -> None:
    writer, store, manifest = started(tmp_path)
    for step in range(1, 4):
        manifest = next_step(writer, store, manifest, [step])
    part = parts(manifest)[3]
    assert part is not None
    file = tmp_path / "store" / file_of(part.name)
    if harm == "missing":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-10])
    else:
        file.write_bytes(file.read_bytes().replace(b'"rows":10', b'"rows":11', 1))
    with pytest.raises(CheckpointError, match=r"midstream rewind .* 2") as error:
        ManifestLog(tmp_path / "manifests").latest()
    assert "lane part" in str(error.value) and file.name in str(error.value)
    assert ManifestLog(tmp_path / "manifests").read(2).step == 2
    assert "manifests" in {one.check for one in examine(tmp_path).findings if not one.harmless}


def test_a_part_of_another_lane_is_not_taken(tmp_path: Path) -> None:
    """Its bytes are whole, and as many; the manifest names its content."""
    _, store, manifest = started(tmp_path)
    one, other = parts(manifest)[:2]
    assert one is not None and other is not None and one.bytes == other.bytes
    with pytest.raises(CheckpointError, match="damaged"):
        store.lane(one._replace(name=other.name))


def test_a_reader_that_comes_late_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer goes on, and takes away the manifest that was listed together with its parts."""
    writer, store, manifest = started(tmp_path)
    manifest = next_step(writer, store, manifest, list(range(LANES)))
    reader, read = ManifestLog(tmp_path / "manifests"), FileStore.lane

    def late(self: FileStore, part: LanePart) -> LaneState:
        nonlocal manifest
        monkeypatch.setattr(FileStore, "lane", read)
        manifest = in_parts(store, touched(manifest, list(range(LANES)), 2))
        newest = ManifestLog(tmp_path / "manifests", keep=1)
        newest.publish(manifest)
        sweep(store.root, [manifest])
        return read(self, part)

    monkeypatch.setattr(FileStore, "lane", late)
    found = reader.latest()
    assert found is not None and found.step == 2


def test_an_answer_of_a_lane_is_not_reported(tmp_path: Path) -> None:
    done, _, store = reported(tmp_path)
    lane, output = next(iter(done.items()))
    with_results = replace(output, results={"q0": Answer.__new__(Answer)})
    assert decode_lanes(encode_lanes({lane: with_results}), store)[lane].results == {}
