"""A sink of files where something is in the way, or what was staged is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.sinks import FileSink, Sink, as_sink
from midstream.sinks.contract import anything
from midstream.storage.places import storage_at
from tests.sinks.steps import commit, staged

ROWS = pa.table({"k": [1, 2]})


def test_what_is_staged_on_a_store_and_gone_is_an_error(bucket: str, tmp_path: Path) -> None:
    """But not where the step is there already."""
    sink = FileSink(bucket)
    given = staged(sink, tmp_path, 0, ROWS)
    for _ in range(2):
        sink.commit(given)
        given.staging.storage.remove(given.files)
    lost = staged(sink, tmp_path, 1, ROWS)
    lost.staging.storage.remove(lost.files)
    with pytest.raises(ms.SinkError, match="the results of step 1 are missing"):
        sink.commit(lost)
    assert [name.partition("/")[0] for name, _ in storage_at(bucket).walk()] == ["step=00000000"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ms.sinks.files(3), "is not a string"),  # type: ignore[arg-type]
        (lambda: ms.sinks.files(""), "is empty"),
        (lambda: ms.sinks.files("a\0b"), "a character 0"),
        (lambda: as_sink({"path": "a", "format": []}, ""), "unknown format"),
        (lambda: as_sink({"type": []}, ""), "unknown sink"),
        (lambda: ms.sinks.PostgresqlSink(3), "is not the name of a table"),  # type: ignore[arg-type]
        (lambda: ms.sinks.PostgresqlSink("t", 3), "not a connection string"),  # type: ignore[arg-type]
        (lambda: ms.sinks.DeltaSink(3), "is not a path"),  # type: ignore[arg-type]
        (lambda: ms.sinks.DeltaSink(""), "is not a path"),
        (lambda: ms.sinks.IcebergSink(3), "is not the name of a table"),  # type: ignore[arg-type]
    ],
)
def test_what_names_no_sink_is_told(make: Callable[[], Sink], message: str) -> None:
    with pytest.raises(ms.SinkError, match=message) as refused:
        make()
    assert refused.value.place and refused.value.remedy


def test_a_file_that_somebody_did_not_end_is_not_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "sink" / "step=00000000"
    folder.mkdir(parents=True)
    (folder / "rows.parquet.tmp").touch()
    commit(FileSink(str(tmp_path / "sink")), tmp_path, 0, ROWS)
    assert [path.name for path in folder.iterdir()] == ["job~first~lane-0.parquet"]


def test_what_cannot_be_moved_out_of_the_way_is_an_error(tmp_path: Path) -> None:
    sink, blocked = FileSink(str(tmp_path / "sink")), tmp_path / "sink" / "step=00000000" / "other.tmp"
    blocked.mkdir(parents=True)
    given = staged(sink, tmp_path, 0, ROWS)
    with pytest.raises(ms.SinkError, match="another file has their name"):
        sink.commit(given)
    blocked.rmdir()
    sink.commit(given)
    assert sink.has_all(given.stamp, given.files)


@pytest.mark.parametrize("tasks_ended", [True, False])
@pytest.mark.parametrize("left", ["job~first~lane-0-broken-off.parquet", ".lane-0.parquet.1.tmp"])
def test_what_a_broken_off_attempt_has_left_does_not_go_with_the_step(
    tmp_path: Path, left: str, tasks_ended: bool
) -> None:
    sink = FileSink(str(tmp_path / "sink"))
    given = replace(staged(sink, tmp_path, 0, ROWS), tasks_ended=tasks_ended)
    Path(given.staging.storage.place(left)).touch()
    sink.commit(given)
    assert [path.name for path in (tmp_path / "sink" / "step=00000000").iterdir()] == ["job~first~lane-0.parquet"]


def test_json_has_texts_of_what_python_has_not(tmp_path: Path) -> None:
    """DuckDB's and PostgreSQL's DATE 'infinity'."""
    far = pa.table({"d": pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())})
    commit(FileSink(str(tmp_path / "sink"), format="json"), tmp_path, 0, far)
    (file,) = (tmp_path / "sink").rglob("*.json")
    assert file.read_text() == '{"d": "1970-01-01"}\n{"d": "<value out of range: 2147483647>"}\n'


FOREIGN = (".nfs000000000123", ".DS_Store", "_SUCCESS", "rows.json~")


def test_files_that_others_put_into_a_step_are_no_results(tmp_path: Path) -> None:
    """A file system keeps a file that was deleted while somebody reads it, under another name: the step is then done
    again, and its results must not count as there.
    """
    sink, folder = FileSink(str(tmp_path / "sink")), tmp_path / "sink" / "step=00000000"
    commit(sink, tmp_path, 0, ROWS)
    for name in FOREIGN:
        (folder / name).write_text("not ours")
    for name in ("step=x", "step=00000000 (copy)", "lost+found"):
        shutil.copytree(folder, tmp_path / "sink" / name)
    kept = [(0, "step=00000000/job~first~lane-0.parquet")]
    for one_by_one in (True, False):
        assert list(sink.files(range(9), anything, one_by_one=one_by_one)) == kept
    sink.forget_after("q", -1)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FOREIGN)
    assert not sink.has(0) and sink.newest("q") is None
    again = staged(sink, tmp_path, 0, ROWS)
    with pytest.raises(ms.SinkError, match="another file has their name"):
        sink.commit(again)
    for name in FOREIGN:
        (folder / name).unlink()
    sink.commit(again)
    assert sink.has_all(again.stamp, again.files)


def test_files_that_others_put_into_a_step_are_not_in_the_way_on_a_store(bucket: str, tmp_path: Path) -> None:
    storage = storage_at(bucket)
    for name in FOREIGN:
        storage.write(f"step=00000000/{name}", b"not ours")
    commit(FileSink(bucket), tmp_path, 0, ROWS)
    kept = [(0, "step=00000000/job~first~lane-0.parquet")]
    assert list(FileSink(bucket).files(range(9), anything)) == kept


def test_rows_that_came_too_late_are_read_beside_files_of_others(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path / "c") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.push({"A": [{"k": "x", "ts": "2024-01-01"}]})
        for folder in (tmp_path / "c" / "dead_letters" / "A").iterdir():
            (folder / ".DS_Store").write_text("not ours")
        assert engine.dead_letters["A"].num_rows == 1
