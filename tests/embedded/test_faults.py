"""What fails around an engine on a checkpoint: a quota, a store that answers too late, rights that are taken away, a
clock that jumps. A push that raises has changed nothing, and is made again once that is mended, without a restart.
"""

from __future__ import annotations

import ast
import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint import event_log
from midstream.model.errors import ReadError, WriteError
from midstream.storage import chunk_cache, disk, objects
from midstream.storage.places import storage_at
from midstream.storage.process_resources import RESOURCES
from tests.embedded.test_checkpoint import SQL, step
from tests.object_server import ObjectServer, Trouble
from tests.unit.building import DDL

STEPS = 4


def engine(place: Path | str) -> ms.Engine:
    found = ms.Engine(checkpoint=f"{place}/checkpoint", lanes=2)
    for name in "AB":
        found.create_stream(name, DDL, timestamp="ts")
    found.add_query("pairs", SQL, sink=ms.sinks.files(f"{place}/out"))
    return found


@pytest.fixture(scope="module")
def answers() -> list[list[object]]:
    """What each push gives back where nothing fails."""
    twin = ms.Engine(lanes=2)
    for name in "AB":
        twin.create_stream(name, DDL, timestamp="ts")
    twin.add_query("pairs", SQL)
    return [rows(twin.push(step(number))["pairs"]) for number in range(STEPS)]


def rows(table: pa.Table) -> list[object]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def in_sink(place: Path | str) -> list[list[object]]:
    storage = storage_at(f"{place}/out")
    files = [[storage.read(f"step={n:08d}/{name}") for name in storage.names(f"step={n:08d}")] for n in range(STEPS)]
    return [rows(pa.concat_tables([pq.read_table(pa.BufferReader(one)) for one in found])) for found in files]


def go_on(running: ms.Engine, place: Path | str, answers: list[list[object]]) -> None:
    """What was mended is not felt any more: every push gives the right answer, and the sink has each once."""
    for number in range(running.manifest.step + 1, STEPS):
        assert rows(running.push(step(number))["pairs"]) == answers[number]
    running.close()
    with engine(place) as again:
        assert again.manifest.step == STEPS - 1
    assert in_sink(place) == answers


ANSWERS = {
    "quota": (Trouble(403, "QuotaExceeded", methods=("PUT",)), "free some space there, or have the quota raised"),
    "full": (Trouble(507, "XMinioStorageFull", methods=("PUT",)), "free some space there, or have the quota raised"),
    "rights": (Trouble(403, "AccessDenied", methods=("PUT",)), "give this machine credentials that may"),
    "clock": (Trouble(403, "RequestTimeTooSkewed"), "set the clock of this machine right"),
}


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_store_that_refuses_amid_a_run(
    fault: str,
    answers: list[list[object]],
    bucket: str,
    object_server: ObjectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path))
    trouble, remedy = ANSWERS[fault]
    running = engine(bucket)
    assert rows(running.push(step(0))["pairs"]) == answers[0]
    with object_server.in_trouble(trouble), pytest.raises((ReadError, WriteError), match=trouble.code) as caught:
        running.push(step(1))
    assert remedy in caught.value.remedy and caught.value.place.startswith(bucket)
    assert running.manifest.step == 0
    go_on(running, bucket, answers)


def test_a_store_that_answers_too_late(
    answers: list[list[object]],
    bucket: str,
    object_server: ObjectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was given up is carried out after all, a little later."""
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(objects, "_LONGEST_REQUEST", "500ms")
        RESOURCES.close()
        running = engine(bucket)
        assert rows(running.push(step(0))["pairs"]) == answers[0]
        with (
            object_server.in_trouble(Trouble(0, seconds=1.5, methods=("PUT",))),
            pytest.raises(WriteError, match="the store does not answer"),
        ):
            running.push(step(1))
        assert running.manifest.step == 0
    RESOURCES.close()
    go_on(running, bucket, answers)


def test_a_quota_that_is_reached_at_any_write(
    answers: list[list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "STEPS_IN_A_FILE", 1)  # Or most steps write no events.
    running, write = engine(tmp_path), os.write
    assert rows(running.push(step(0))["pairs"]) == answers[0]
    for allowed in range(100):
        left = [allowed]

        def limited(handle: int, data: bytes, left: list[int] = left) -> int:
            if not left[0]:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            left[0] -= 1
            return write(handle, data)

        with monkeypatch.context() as patched:
            patched.setattr(disk.os, "write", limited)
            try:
                found = running.push(step(1))
            except WriteError as error:
                assert "quota" in error.message and "free some space" in error.remedy
                assert running.manifest.step == 0
                continue
        assert rows(found["pairs"]) == answers[1]
        break
    assert allowed > 3
    go_on(running, tmp_path, answers)


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Nothing below may be written by this process any more, also where it is root's."""
    folders, user = [folder, *(path for path in folder.rglob("*") if path.is_dir())], os.geteuid()
    for one in folders:
        one.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        for one in folders:
            one.chmod(0o755)


def test_rights_that_are_taken_away_amid_a_run(answers: list[list[object]], tmp_path: Path) -> None:
    running = engine(tmp_path)
    for number in range(2):
        assert rows(running.push(step(number))["pairs"]) == answers[number]
    with without_rights(tmp_path), pytest.raises(ms.MidstreamError, match="Permission denied") as caught:
        running.push(step(2))
    assert caught.value.place.startswith(str(tmp_path)) and caught.value.remedy
    assert running.manifest.step == 1
    go_on(running, tmp_path, answers)


def test_a_clock_that_jumps(answers: list[list[object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the time of day nor the times of files decide anything: both are years off at every look."""
    chance = Random(0)
    monkeypatch.setattr(time, "time", lambda: chance.uniform(0, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: chance.randrange(4 * 10**18))
    for number in range(STEPS):
        with engine(tmp_path) as running:
            assert rows(running.push(step(number))["pairs"]) == answers[number]
        for path in tmp_path.rglob("*"):
            moment = chance.randrange(4 * 10**9)
            os.utime(path, (moment, moment))
    assert in_sink(tmp_path) == answers


NOW = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow", "date.today"}


TOLD = {
    f"{name}.py: time.time"
    for name in ("job_reading", "epochs", "reader", "run_console", "send", "status", "step_times", "stop_job")
}
"""When a step began and ended, when a driver began and ended, how long ago that was for who asks: shown to people, and
read by nobody else. The clock that jumps, above, jumps there too.
"""


def test_nothing_asks_what_time_it_is() -> None:
    """A test can replace what Python's code calls, not what is in C: so there is no such call but where it is told."""
    found = []
    for path in Path(ms.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ".".join(ast.unparse(node).split(".")[-2:]) in NOW:
                found.append(f"{path.name}: {ast.unparse(node)}")
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                found += [f"{path.name}: {one.name}" for one in node.names if f"time.{one.name}" in NOW]
    assert set(found) == TOLD
