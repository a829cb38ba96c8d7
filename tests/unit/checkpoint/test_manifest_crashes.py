"""A writer that dies, or is cut short anywhere, leaves a log that can be gone on from."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.checkpoint import manifest_file
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.manifest import Manifest
from tests.unit.checkpoint.manifests import go_on, plain, publish, small


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
