import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.checkpoint import manifest_file
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.model import manifest as manifest_model
from midstream.model.codec import encode
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError, LostCheckpointError, SinkError
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, QueryEntry, StateListing, StreamProgress
from midstream.model.schema import StreamSchema
from midstream.model.time_line import Epoch
from midstream.state.store import disk
from midstream.state.store.local import LocalStorage
from midstream.step.commands.migrate import Migrate

OURS = f"this midstream reads version {manifest_model.FORMAT_VERSION}"
A = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts", 5, 7)


def full(step: int, job: str = "naïve 漢字") -> Manifest:
    chunk = ChunkRef(f"A.lane0/{step:06d}-base", 10, 640, 0xDEADBEEF, 3, {"ts": (1, 2), "rows:A": (5, 2**63 - 1)})
    return Manifest(
        job=job,
        step=step,
        seed=42,
        lanes=3,
        streams={"A": A},
        progress={"A": StreamProgress(5, 4, None, 10, 1, 2)},
        queries={"q": QueryEntry("SELECT …", "(A B)", 0, "k", {"format": "parquet"}, Counters(rows_in=3))},
        lane_states={
            LaneId("single", 0): LaneState(
                {StateId("A", "0", "scan"): StateListing((chunk,), 9, 13)}, {"q": {"phase": [1, None, 0.5]}}
            )
        },
        last_command=3,
        pending=(Migrate("q", "(B A)"),),
        published={"q": step},
    )


def small(step: int, job: str = "") -> Manifest:
    return Manifest(job=job, step=step)


def file_of(log: ManifestLog, step: int) -> Path:
    return log.root / f"{step:012d}.json"


@pytest.fixture
def log(tmp_path: Path) -> ManifestLog:
    return ManifestLog(tmp_path / "manifests", keep=4)


def publish(log: ManifestLog, *steps: int, job: str = "") -> None:
    for step in steps:
        log.publish(small(step, job))


def test_nothing_yet(log: ManifestLog) -> None:
    assert log.latest() is None
    assert log.steps() == ()
    assert log.kept() == ()
    assert not log.root.exists()
    with pytest.raises(CheckpointError, match=r"step 3 is not kept.*none"):
        log.read(3)


def test_what_comes_back_is_what_was_published(log: ManifestLog) -> None:
    log.publish(full(12))
    assert log.latest() == full(12) == log.read(12) == log.kept()[0]
    assert ManifestLog(log.root).latest() == full(12)


def test_a_manifest_before_the_first_step(log: ManifestLog) -> None:
    publish(log, -1, 0)
    assert log.steps() == (-1, 0)
    assert log.read(-1).step == -1


def test_the_file_is_compact_json(log: ManifestLog) -> None:
    log.publish(full(12))
    text = file_of(log, 12).read_text()
    assert json.loads(text)["format"] == manifest_model.FORMAT_VERSION
    assert json.loads(text)["value"] == json.loads(
        json.dumps({"format": manifest_model.FORMAT_VERSION, **encode(full(12))})
    )
    assert ": " not in text
    assert '", "' not in text


def test_the_newest_few_are_kept(log: ManifestLog) -> None:
    publish(log, *range(10))
    assert log.steps() == (6, 7, 8, 9)
    assert [manifest.step for manifest in log.kept()] == [6, 7, 8, 9]
    assert sorted(path.name for path in log.root.iterdir()) == [f"{step:012d}.json" for step in (6, 7, 8, 9)]
    with pytest.raises(CheckpointError, match=r"step 2 is not kept.*choose a kept step: 6 to 9"):
        log.read(2)


def test_fewer_may_be_kept_than_before(log: ManifestLog) -> None:
    publish(log, *range(4))
    ManifestLog(log.root, keep=1).publish(small(4))
    assert log.steps() == (4,)
    with pytest.raises(CheckpointError, match=r"cannot keep 0 manifests.*Remedy"):
        ManifestLog(log.root, keep=0)


def test_an_old_manifest_goes_only_when_the_new_one_stands(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(log, *range(4))
    monkeypatch.setattr(disk.os, "replace", failing(OSError(28, "No space left on device")))
    with pytest.raises(SinkError, match="No space left on device"):
        publish(log, 4)
    assert log.steps() == (0, 1, 2, 3)


def test_an_old_manifest_that_cannot_be_removed_does_not_fail_the_step(
    log: ManifestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(log, *range(4))
    monkeypatch.setattr(disk.os, "unlink", failing(OSError(13, "Permission denied")))
    publish(log, 4)
    monkeypatch.undo()
    assert len(list(log.root.glob("*.json"))) == 5
    assert log.steps() == (1, 2, 3, 4), "what should be gone does not count, for its chunks may be"
    publish(log, 5)
    assert log.steps() == (2, 3, 4, 5)


def failing(error: OSError) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_publishing_a_step_again_replaces_it(log: ManifestLog) -> None:
    publish(log, *range(6))
    log.publish(small(5, "replayed"))
    assert log.steps() == (2, 3, 4, 5)
    assert log.latest() == small(5, "replayed")


def test_leftovers_of_broken_writes_do_not_count(log: ManifestLog) -> None:
    publish(log, 0, 1)
    (log.root / ".000000000002.json.ab-1-2.tmp").write_text("half")
    (log.root / "notes.txt").write_text("the user's own")
    assert log.latest() == small(1)
    publish(log, 2)
    assert not list(log.root.glob(".*"))
    assert (log.root / "notes.txt").exists()


def test_steps_need_not_be_consecutive(log: ManifestLog) -> None:
    publish(log, 3, 10, 11, 900_000_000_000_000)
    assert log.steps() == (3, 10, 11, 900_000_000_000_000)


# Going back


def plain(manifest: Manifest | None) -> Manifest | None:
    return replace(manifest, epochs=()) if manifest else None


def go_on(log: ManifestLog, step: int, job: str = "") -> None:
    """Publish a step as the driver does that found the newest manifest and claimed the next epoch."""
    writer = Writer.take(log, take_over=True)
    newest = log.latest()
    assert newest is not None
    writer.begin(newest)
    line = log.latest()
    assert line is not None
    writer.commit(replace(small(step, job), epochs=line.epochs))
    writer.release()


def test_rewind(log: ManifestLog) -> None:
    publish(log, *range(6), job="old")
    assert plain(log.rewind(3)) == small(3, "old")
    assert log.steps() == (2, 3)
    assert plain(log.latest()) == small(3, "old")
    go_on(log, 4, job="new")
    assert log.steps() == (2, 3, 4)
    assert plain(log.latest()) == small(4, "new")
    assert [manifest.job for manifest in log.kept()] == ["old", "old", "new"]


def test_rewind_to_where_we_are(log: ManifestLog) -> None:
    publish(log, 0, 1)
    assert plain(log.rewind(1)) == small(1)
    assert log.steps() == (0, 1)
    newest = log.latest()
    assert newest is not None
    assert [(epoch.since, epoch.abandoned) for epoch in newest.epochs] == [(2, None)]


def test_what_was_given_up_is_remembered(log: ManifestLog) -> None:
    publish(log, *range(6))
    log.rewind(4)
    log.rewind(3)
    newest = log.latest()
    assert newest is not None
    assert [(epoch.since, epoch.abandoned) for epoch in newest.epochs] == [(5, 5), (4, 4)]


@pytest.mark.parametrize("step", [0, 1, 99, -1])
def test_rewind_to_a_step_that_is_not_kept(log: ManifestLog, step: int) -> None:
    publish(log, *range(6))
    with pytest.raises(CheckpointError, match=f"step {step} is not kept.*2 to 5"):
        log.rewind(step)
    assert log.steps() == (2, 3, 4, 5)
    assert log.epochs.newest() is None


def test_a_manifest_of_a_driver_that_was_overtaken_does_not_count(log: ManifestLog) -> None:
    first = Writer.take(log)
    publish(log, *range(3))
    begun = first.begin(small(2))
    second = Writer.take(log, take_over=True)
    line = second.begin(begun)
    with pytest.raises(LostCheckpointError, match="has taken the checkpoint over"):
        first.commit(replace(begun, step=3, job="stale"))
    assert log.steps() == (0, 1, 2)
    assert log.latest() == line
    second.commit(replace(line, step=3, job="new"))
    assert [(manifest.step, manifest.job) for manifest in log.kept()] == [(0, ""), (1, ""), (2, ""), (3, "new")]
    for step in range(4, 9):
        second.commit(replace(line, step=step))
    with pytest.raises(LostCheckpointError):
        first.commit(replace(begun, step=3, job="stale"))
    assert log.steps() == (5, 6, 7, 8)
    second.commit(replace(line, step=9))
    assert sorted(path.name for path in log.root.glob("*.json")) == [
        f"000002-{step:012d}.json" for step in range(6, 10)
    ]


def in_epoch(step: int, job: str = "j") -> Manifest:
    return replace(small(step, job), epochs=(Epoch(1, "first", 0),))


def test_a_request_that_comes_late_brings_nothing_back(log: ManifestLog) -> None:
    """An object store may carry out a request long after it was given up, or once more."""
    late: list[tuple[Path, bytes]] = []

    def publish(manifest: Manifest) -> None:
        log.publish(manifest)
        late.extend((path, path.read_bytes()) for path in log.root.glob("*.json"))

    def arrive() -> None:
        for path, data in reversed(late):
            path.write_bytes(data)

    for step in range(8):
        publish(in_epoch(step))
    publish(in_epoch(7, "again"))
    assert log.latest() == in_epoch(7, "again")
    arrive()
    for one in (log, ManifestLog(log.root, keep=4)):
        assert one.steps() == (4, 5, 6, 7) and one.latest() == in_epoch(7, "again")
    log.rewind(6)
    arrive()
    for one in (log, ManifestLog(log.root, keep=4)):
        assert one.steps() == (4, 5, 6), "what was gone when the job went back stays gone"
    ManifestLog(log.root, keep=4).publish(replace(in_epoch(8), epochs=log.read(6).epochs))
    assert len(list(log.root.glob("*.json"))) == 4, "and the next writer removes it"


def test_claims_that_somebody_removed_give_no_number_again(log: ManifestLog) -> None:
    publish(log, 0)
    go_on(log, 1)
    go_on(log, 2)
    for claim in log.root.glob("*.claim"):
        claim.unlink()
    go_on(log, 3, "newest")
    assert plain(log.latest()) == small(3, "newest")
    assert log.steps() == (0, 1, 2, 3)


def test_a_step_is_published_though_the_folder_cannot_be_listed_after(
    log: ManifestLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(log, 0)
    with monkeypatch.context() as patched:
        patched.setattr(disk.os, "listdir", failing(OSError(5, "Input/output error")))
        publish(log, 1)
    assert log.steps() == (0, 1)


def test_what_an_overtaken_driver_published_before_the_other_read_it_counts(log: ManifestLog) -> None:
    first = Writer.take(log)
    begun = first.begin(small(-1))
    second = Writer.take(log, take_over=True)
    with pytest.raises(LostCheckpointError):
        first.commit(replace(begun, step=0, job="delivered by the other"))
    newest = log.latest()
    assert newest is not None
    line = second.begin(newest)
    assert (line.step, line.job) == (0, "delivered by the other")
    assert line.time_line.stamp(0).epoch == first.claim.token


class Crash(BaseException):
    """The process is gone: not an Exception, so nothing may handle it."""


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let the process die just before its n-th change to the disk."""

    def arm(changes: int) -> None:
        left = [changes]
        for name in ("open", "write", "replace", "unlink", "makedirs", "link"):
            real = getattr(os, name)

            def change(*args: object, real: Callable[..., object] = real, **kwargs: object) -> object:
                if left[0] == 0:
                    raise Crash
                left[0] -= 1
                return real(*args, **kwargs)

            monkeypatch.setattr(os, name, change)

    yield arm


@pytest.mark.parametrize("action", ["publish", "again", "rewind", "first"])
def test_a_crash_at_any_point_leaves_the_old_or_the_new(
    tmp_path: Path, action: str, crash_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    actions: dict[str, tuple[Callable[[ManifestLog], object], Manifest | None, Manifest]] = {
        "publish": (lambda log: log.publish(small(6, "new")), small(5, "old"), small(6, "new")),
        "again": (lambda log: log.publish(small(5, "new")), small(5, "old"), small(5, "new")),
        "rewind": (lambda log: log.rewind(3), small(5, "old"), small(3, "old")),
        "first": (lambda log: log.publish(small(0, "new")), None, small(0, "new")),
    }
    act, before, after = actions[action]
    outcomes = set()
    for changes in range(30):
        root = tmp_path / str(changes)
        if before is not None:
            publish(ManifestLog(root, keep=4), *range(6), job="old")
        crash_at(changes)
        try:
            act(ManifestLog(root, keep=4))
            crashed = False
        except Crash:
            crashed = True
        monkeypatch.undo()
        log = ManifestLog(root, keep=4)
        found = plain(log.latest())
        assert found in (before, after)
        outcomes.add(None if found is None else (found.step, found.job))
        assert log.steps() == tuple(manifest.step for manifest in log.kept())
        if found is None:
            publish(log, -1)
        go_on(log, 0 if found is None else found.step + 1, "next")
        assert plain(log.latest()) == small(0 if found is None else found.step + 1, "next")
        assert not [path for path in root.iterdir() if path.name.endswith(".tmp")]
        if not crashed:
            break
    else:
        pytest.fail("more changes than expected")
    assert changes >= 3
    assert len(outcomes) == 2 if before != after else 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_like_a_list_of_manifests(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    keep = data.draw(st.integers(1, 4))
    log = ManifestLog(tmp_path_factory.mktemp("log"), keep)
    model: dict[int, Manifest] = {}
    publish(log, 0)
    model = {0: small(0)}
    for turn in range(data.draw(st.integers(1, 12))):
        newest = max(model)
        if data.draw(st.booleans()):
            step = data.draw(st.sampled_from(sorted(model)))
            assert plain(log.rewind(step)) == model[step]
        else:
            step = data.draw(st.integers(newest + 1, newest + 2))
            model[step] = small(step, str(turn))
            go_on(log, step, str(turn))
        model = {s: model[s] for s in sorted(s for s in model if s <= step)[-keep:]}
        if data.draw(st.booleans()):
            log = ManifestLog(log.root, keep)
        assert log.steps() == tuple(sorted(model))
        assert tuple(map(plain, log.kept())) == tuple(model[s] for s in sorted(model))
        assert plain(log.latest()) == model[max(model)]


# Damage


def test_any_flipped_byte_is_found(log: ManifestLog) -> None:
    publish(log, 0, 1)
    path = file_of(log, 1)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x02]) + whole[at + 1 :])
        with pytest.raises(CheckpointError) as caught:
            log.latest()
        assert caught.value.place == str(path)
        assert caught.value.remedy
    path.write_bytes(whole)
    assert log.latest() == small(1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]\n",
        b"\xff\xfe",
        b'{"format":%d}\n' % manifest_model.FORMAT_VERSION,
        disk.seal(5),
        disk.seal({"format": 2}),
    ],
)
def test_a_damaged_newest_manifest_names_the_way_out(log: ManifestLog, content: bytes) -> None:
    publish(log, *range(4))
    file_of(log, 3).write_bytes(content)
    file_of(log, 2).write_bytes(b"damaged too")
    with pytest.raises(CheckpointError) as caught:
        log.latest()
    assert caught.value.place == str(file_of(log, 3))
    assert "go back to step 1 " in caught.value.remedy
    assert log.read(1) == small(1)
    assert f"midstream rewind {log.root.parent} 1" in caught.value.remedy
    log.rewind(1)
    assert plain(log.latest()) == small(1)


def test_no_way_out(log: ManifestLog) -> None:
    publish(log, 0)
    file_of(log, 0).write_bytes(b"")
    with pytest.raises(CheckpointError, match="no older step is whole"):
        log.latest()


def test_a_damaged_older_manifest_stops_only_the_sweep(log: ManifestLog) -> None:
    publish(log, 0, 1, 2)
    file_of(log, 1).write_bytes(b"")
    assert log.latest() == small(2)
    with pytest.raises(CheckpointError, match="go back to step 0"):
        log.kept()
    with pytest.raises(CheckpointError, match="go back to step 0"):
        log.rewind(1)
    assert log.epochs.newest() is None
    publish(log, 3)
    assert log.steps() == (0, 1, 2, 3)


def test_a_damaged_turn(log: ManifestLog) -> None:
    publish(log, 0, 1)
    (log.root / "turn.json").write_bytes(b"")
    with pytest.raises(CheckpointError, match="remove it: the job is then where it was"):
        log.latest()
    (log.root / "turn.json").unlink()
    assert log.latest() == small(1)


def test_format_3_which_knew_no_epochs(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"format": 3, **encode(full(4))}
    del value["epochs"]
    log.root.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(disk, "FORMAT_VERSION", 3)
        file_of(log, 4).write_bytes(disk.seal(value))
    assert log.latest() == full(4)
    go_on(log, 5)
    assert [manifest.step for manifest in log.kept()] == [4, 5]


def test_another_format_version(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(log, 0)
    monkeypatch.setattr(disk, "FORMAT_VERSION", 99)
    monkeypatch.setattr(manifest_file, "FORMAT_VERSION", 99)
    publish(log, 1)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"format version 99, {OURS}.*use the version"):
        log.latest()


def test_another_format_version_inside(log: ManifestLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_file, "FORMAT_VERSION", 99)
    publish(log, 0)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"format version 99, {OURS}"):
        log.latest()


def test_kept_looks_again_at_a_file_that_changed(log: ManifestLog) -> None:
    publish(log, 0, 1)
    assert log.kept() == (small(0), small(1))
    other = ManifestLog(log.root)
    other.publish(small(1, "by another"))
    assert log.kept() == (small(0), small(1, "by another"))


def test_a_long_run_remembers_only_what_is_kept(log: ManifestLog) -> None:
    for step in range(50):
        log.publish(replace(small(step), epochs=(Epoch(1, "a", 0),)))
    assert len(log._seen) == 4


def test_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "child"):
        log = ManifestLog(root)
        with pytest.raises((SinkError, CheckpointError), match="Remedy"):
            log.publish(small(0))
        with pytest.raises(CheckpointError, match="cannot read"):
            log.latest()


def test_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(disk.os, "fsync", synced.append)
    publish(ManifestLog(tmp_path), 0)
    assert synced == []
    log = ManifestLog(LocalStorage(tmp_path, durable=True))
    publish(log, 1)
    assert len(synced) == 2
    log.epochs.claim()
    assert len(synced) == 4


def test_readers_while_the_writer_goes_on(log: ManifestLog) -> None:
    writer_log, wrong, stop = ManifestLog(log.root, keep=1), list[object](), threading.Event()
    publish(writer_log, 0)

    def read() -> None:
        last = 0
        try:
            while not stop.is_set():
                manifest = log.latest()
                if manifest is None or manifest.step < last:
                    wrong.append((manifest, last))
                last = manifest.step if manifest else last
                log.kept()
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    publish(writer_log, *range(1, 300))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


KILLED = """
import itertools, sys
from dataclasses import replace
from midstream.checkpoint.writer import Writer
from midstream.model.manifest import Manifest
from midstream.checkpoint import manifest_file
from midstream.checkpoint.manifest_log import ManifestLog
log = ManifestLog(sys.argv[1], keep=3)
found = log.latest()
print("ready", flush=True)
writer = Writer.take(log)
line = writer.begin(found or Manifest())
for step in itertools.count(found.step + 1 if found else 0):
    writer.commit(replace(line, step=step, job="x" * 20_000))
    if step % 7 == 6:
        writer.release()
        log.rewind(step - 1)
        writer = Writer.take(log)
        line = writer.begin(log.latest())
        writer.commit(replace(line, step=step, job="x" * 20_000))
"""


def test_a_killed_writer_can_always_go_on(tmp_path: Path) -> None:
    source = str(Path(manifest_file.__file__).parents[2])
    last = -1
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        with writer.stdout as out:
            assert out.readline() == b"ready\n"
            log = ManifestLog(tmp_path, keep=3)
            while not (log.steps() and log.steps()[-1] >= last + 30):
                assert writer.poll() is None
            writer.kill()
            writer.wait()
        found = log.latest()
        assert found is not None
        assert found.step >= last + 29
        last = found.step
        assert len(log.kept()) in (2, 3, 4)
