"""Going back to an older step, and drivers that others have overtaken."""

from dataclasses import replace
from pathlib import Path

import pytest

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import STEPS_BETWEEN_REMOVALS, Writer
from midstream.model.errors import CheckpointError, LostCheckpointError
from midstream.model.manifest import Manifest
from midstream.model.time_line import Epoch
from midstream.storage import disk
from tests.unit.checkpoint.manifests import failing, go_on, plain, publish, small


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
    last = 2 * STEPS_BETWEEN_REMOVALS
    for step in range(9, last + 1):
        second.commit(replace(line, step=step))
    assert sorted(path.name for path in log.root.glob("*.json")) == [
        f"000002-{step:012d}.json" for step in range(last - 3, last + 1)
    ]


def test_a_driver_that_was_overtaken_removes_nothing(log: ManifestLog) -> None:
    first = Writer.take(log)
    begun = first.begin(small(0))
    for step in range(1, STEPS_BETWEEN_REMOVALS):
        first.commit(replace(begun, step=step))
    Writer.take(ManifestLog(log.root, keep=4), take_over=True)
    (log.root / ".000002-000000000004.json.other-1-2.tmp").write_text("half, by the other driver")
    before = {path.name: path.read_bytes() for path in log.root.iterdir()}
    with pytest.raises(LostCheckpointError):
        first.commit(replace(begun, step=STEPS_BETWEEN_REMOVALS))
    after = {path.name: path.read_bytes() for path in log.root.iterdir()}
    assert after.pop(f"000001-{STEPS_BETWEEN_REMOVALS:012d}.json")
    assert after == before


def test_what_a_writer_has_not_removed_yet_is_not_kept(log: ManifestLog) -> None:
    """Manifests are removed a few steps at a time; going back brings none of them back, for their chunks are gone."""
    writer = Writer.take(log)
    begun = writer.begin(small(0))
    for step in range(1, 2 * STEPS_BETWEEN_REMOVALS):
        writer.commit(replace(begun, step=step))
        assert len(log.steps()) == min(step + 1, 4)
        assert len(list(log.root.glob("*.json"))) <= 4 + STEPS_BETWEEN_REMOVALS
    writer.release()
    last = 2 * STEPS_BETWEEN_REMOVALS - 1
    assert len(list(log.root.glob("*.json"))) > 4
    before = {path: path.read_bytes() for path in log.root.glob("*.json")}
    log.rewind(last - 2)
    for path, data in before.items():  # As if what going back removes had stayed, too.
        path.write_bytes(data)
    for one in (log, ManifestLog(log.root, keep=4)):
        assert one.steps() == (last - 3, last - 2)


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
