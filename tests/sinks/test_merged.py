"""Results are merged while a job runs; whoever reads sees each row once, whenever a merge is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.pipeline.merge_results import Merging, merge_results
from midstream.sinks import merged as merged_module
from midstream.sinks.merged import MergedResults
from midstream.storage.local import LocalStorage
from midstream.storage.objects import ObjectStorage
from midstream.storage.places import storage_at
from midstream.storage.storage_contract import Storage
from tests.embedded.test_checkpoint import SQL, opened, step
from tests.unit.building import DDL

CHANGING = ("write", "create", "remove", "remove_folder", "settle")
OF_SYSTEM = ("link", "symlink", "replace", "makedirs")


class Killed(BaseException):
    """Instead of a signal, where what runs cannot be forked."""


def merge(root: Path | str, full: int = 1) -> Merging:
    place = f"{root}/checkpoint"
    return merge_results(Checkpoint.open(place), "pairs", full)


def rows_of(paths: list[str]) -> Counter[tuple[Any, ...]]:
    """The rows of Parquet files, by our own storage."""
    tables = [pq.read_table(pa.BufferReader(storage_at(os.path.dirname(p)).read(os.path.basename(p)))) for p in paths]
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def globbed(pattern: str) -> Counter[tuple[Any, ...]]:
    """The rows that a reader finds who knows nothing of us."""
    return Counter(duckdb.sql(f"SELECT k, w FROM read_parquet('{pattern}', hive_partitioning = false)").fetchall())


def pushed(engine: ms.Engine, steps: range) -> list[Counter[tuple[Any, ...]]]:
    """The rows that each of some steps gives."""
    return [Counter(map(_values, engine.push(step(number))["pairs"].to_pylist())) for number in steps]


def _values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def prefixes(steps: list[Counter[tuple[Any, ...]]]) -> list[Counter[tuple[Any, ...]]]:
    """The results up to each step; first, of none."""
    found = [Counter[tuple[Any, ...]]()]
    for one in steps:
        found.append(found[-1] + one)
    return found


def test_all_rows_are_in_few_files_and_the_sinks_own_stay(tmp_path: Path) -> None:
    sink = tmp_path / "out"
    with opened(tmp_path, sink=ms.sinks.files(sink)) as engine:
        done = pushed(engine, range(40))
        first = merge(tmp_path, 1 << 20)
        done += pushed(engine, range(40, 45))
        assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done)[40]
        second = merge(tmp_path, 1 << 20)
    assert (first.read, second.read) == (40, 5)
    assert [len(one.parts) for one in (first, second, merge(tmp_path))] == [1, 1, 1]
    assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done)[-1]
    assert globbed(f"{sink}.merged/current/*.parquet") == globbed(f"{sink}/step=*/*.parquet") == prefixes(done)[-1]


def test_full_files_are_not_written_again(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        done = pushed(engine, range(3))
        first = merge(tmp_path).parts
        done += pushed(engine, range(3, 6))
        second = merge(tmp_path).parts
    assert second[: len(first)] == first and [part.first for part in second] == [0, 1, 2, 3, 4, 5]
    assert rows_of(ms.sinks.merged_files(tmp_path / "checkpoint/results/pairs")) == prefixes(done)[-1]


FOREIGN = (".nfs000000000123", ".DS_Store", "00000001 (copy).json", "00000001-0.parquet~", "lost+found", "1")


def test_files_that_others_put_there_are_passed_over_and_stay(tmp_path: Path) -> None:
    folders = [tmp_path / "out.merged" / name for name in ("_log", "_parts", "_views")]
    with opened(tmp_path, sink=ms.sinks.files(tmp_path / "out")) as engine:
        done = pushed(engine, range(1))
        merge(tmp_path)
        for path in (folder / name for folder in folders for name in FOREIGN):
            path.write_text("not ours")
        for number in range(1, 6):
            done += pushed(engine, range(number, number + 1))
            merge(tmp_path)
    assert rows_of(ms.sinks.merged_files(tmp_path / "out")) == prefixes(done)[-1]
    own = [{path.name for path in folder.iterdir()} - {*FOREIGN} for folder in folders]
    assert [len(list(folder.iterdir())) - len(names) for folder, names in zip(folders, own, strict=True)] == [6, 6, 6]
    assert own[0] == {"00000005.json", "00000006.json"}


def test_columns_that_change_begin_another_file(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        done = pushed(engine, range(3))
        engine.drop_query("pairs")
        engine.add_query("pairs", SQL.replace("B.v AS w", "A.v AS x"))
        done += pushed(engine, range(3, 6))
    parts = merge(tmp_path, 1 << 20).parts
    assert [(part.first, part.through.step) for part in parts] == [(0, 2), (3, 5)]
    assert rows_of(ms.sinks.merged_files(tmp_path / "checkpoint/results/pairs")) == prefixes(done)[-1]


def test_what_was_merged_of_steps_that_are_given_up_is_taken_back(tmp_path: Path) -> None:
    sink = tmp_path / "checkpoint/results/pairs"
    with opened(tmp_path) as engine:
        done = pushed(engine, range(3))
        merge(tmp_path)
        done += pushed(engine, range(3, 6))
    merge(tmp_path)
    assert main(["rewind", str(tmp_path / "checkpoint"), "3"]) == 0
    assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done)[4] == globbed(f"{sink}.merged/current/*.parquet")
    with opened(tmp_path) as engine:
        again = pushed(engine, range(6, 8))
    assert merge(tmp_path).read == 2
    assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done[:4] + again)[-1]


def test_a_merge_that_a_rewind_overtakes_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = tmp_path / "checkpoint/results/pairs"
    with opened(tmp_path) as engine:
        done = pushed(engine, range(3))
        merge(tmp_path)
        pushed(engine, range(3, 6))
    add = MergedResults.add

    def late(self: MergedResults, number: int, parts: Any) -> bool:
        monkeypatch.setattr(MergedResults, "add", add)
        assert main(["rewind", str(tmp_path / "checkpoint"), "2"]) == 0
        with opened(tmp_path) as engine:
            done.extend(pushed(engine, range(7, 8)))
        merge(tmp_path)
        return add(self, number, parts)

    monkeypatch.setattr(MergedResults, "add", late)
    merge(tmp_path)
    assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done)[-1] == globbed(f"{sink}.merged/current/*.parquet")


def dying_at(point: int, die: Callable[[], None], monkeypatch: pytest.MonkeyPatch, kind: type[Storage]) -> None:
    """Have the process die right before its change of that number to a storage or the file system, and again after."""
    count = [0]

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            # A timer of the engine writes the times of its steps, which is no change of the merge.
            if not isinstance(threading.current_thread(), threading.Timer):
                count[0] += 1
                if count[0] == point:
                    die()
            return original(*given, **named)

        return call

    for name in CHANGING:
        monkeypatch.setattr(kind, name, counted(getattr(kind, name)))
    if kind is LocalStorage:
        for name in OF_SYSTEM:
            monkeypatch.setattr(merged_module.os, name, counted(getattr(os, name)))


def killed_at(point: int, root: Path) -> bool:
    """Whether a merge was killed at a point; otherwise it has ended."""
    child = os.fork()
    if not child:
        with pytest.MonkeyPatch.context() as patched:
            dying_at(point, lambda: os.kill(os.getpid(), signal.SIGKILL), patched, LocalStorage)
            merge(root)
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def test_a_merge_is_killed_at_each_point(tmp_path: Path) -> None:
    """Readers see the results up to a step; the next merge ends what was begun, and nothing is left over."""
    sink, killed = tmp_path / "checkpoint/results/pairs", 0
    with opened(tmp_path) as engine:
        done = pushed(engine, range(3))
        merge(tmp_path, 1 << 20)
        for point in range(1, 100):
            done += pushed(engine, range(len(done), len(done) + 1))
            was = killed_at(point, tmp_path)
            known = prefixes(done)
            for seen in (rows_of(ms.sinks.merged_files(sink)), globbed(f"{sink}.merged/current/*.parquet")):
                assert seen in known[-2 if was else -1 :] or (was and seen in known), point
            if not was:
                break
            killed += 1
            if point % 2:
                merge(tmp_path)
                assert rows_of(ms.sinks.merged_files(sink)) == globbed(f"{sink}.merged/current/*.parquet") == known[-1]
    assert killed >= 10 and globbed(f"{sink}/step=*/*.parquet") == prefixes(done)[-1]
    for _ in range(3):
        with opened(tmp_path) as engine:
            done += pushed(engine, range(len(done), len(done) + 1))
        merge(tmp_path)
    folder = Path(f"{sink}.merged")
    assert len(list((folder / "_log").iterdir())) == 2
    assert len(list((folder / "_views").iterdir())) == 2
    named = {os.path.basename(file) for file in ms.sinks.merged_files(sink)}
    assert len({file.name for file in (folder / "_parts").iterdir()} - named) <= 1  # The list before has it.
    assert main(["doctor", str(tmp_path / "checkpoint")]) == 0


def test_a_merge_dies_at_each_point_on_a_store(bucket: str) -> None:
    sink = f"{bucket}/checkpoint/results/pairs"
    engine = ms.Engine(checkpoint=f"{bucket}/checkpoint")
    for name in "AB":
        engine.create_stream(name, DDL, timestamp="ts")
    engine.add_query("pairs", SQL)
    with engine:
        done = pushed(engine, range(3))
        merge(bucket)
        for point in range(1, 100):
            done += pushed(engine, range(len(done), len(done) + 1))
            with pytest.MonkeyPatch.context() as patched:
                dying_at(point, lambda: (_ for _ in ()).throw(Killed), patched, ObjectStorage)
                try:
                    merge(bucket)
                    was = False
                except Killed:
                    was = True
            assert rows_of(ms.sinks.merged_files(sink)) in (prefixes(done) if was else prefixes(done)[-1:])
            if not was:
                break
            merge(bucket)
            assert rows_of(ms.sinks.merged_files(sink)) == prefixes(done)[-1]
    assert point > 3


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[list[Counter[tuple[Any, ...]]], threading.Event]]:
    """A thread that reads what is merged over and over, by the plain path, and what it saw."""
    seen, stop = list[Counter[tuple[Any, ...]]](), threading.Event()
    database = duckdb.connect()
    pattern = f"{tmp_path}/checkpoint/results/pairs.merged/current/*.parquet"

    def read() -> None:
        while not stop.is_set():
            try:
                seen.append(Counter(database.execute(f"SELECT k, w FROM read_parquet('{pattern}')").fetchall()))
            except duckdb.IOException:  # It was turned between listing and reading: an error, never a wrong answer.
                continue

    thread = threading.Thread(target=read)
    thread.start()
    yield seen, stop
    stop.set()
    thread.join()


def test_merging_goes_on_beside_a_job_and_a_reader(
    tmp_path: Path, reader: tuple[list[Counter[tuple[Any, ...]]], threading.Event]
) -> None:
    """Two merge at once while steps are done; each reading is the results up to some step."""
    done, ended, failed = list[Counter[tuple[Any, ...]]](), threading.Event(), list[BaseException]()

    def merging() -> None:
        try:
            while not ended.is_set():
                merge(tmp_path, 5_000)
        except BaseException as error:
            failed.append(error)

    with opened(tmp_path) as engine:
        done += pushed(engine, range(2))
        threads = [threading.Thread(target=merging) for _ in range(2)]
        for thread in threads:
            thread.start()
        done += pushed(engine, range(2, 60))
        ended.set()
        for thread in threads:
            thread.join()
    merge(tmp_path, 5_000)
    seen, stop = reader
    stop.set()
    known = prefixes(done)
    assert failed == [] and seen
    assert [one for one in seen if one not in known] == []
    assert rows_of(ms.sinks.merged_files(tmp_path / "checkpoint/results/pairs")) == known[-1]


def test_the_command_says_what_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path) as engine:
        pushed(engine, range(3))
    assert main(["compact", str(tmp_path / "checkpoint")]) == 0
    said = "".join(capsys.readouterr().out.split())
    assert "pairs:3newfiles;" in said and "pairs.merged/current" in said
    assert main(["compact", str(tmp_path / "checkpoint"), "nothing"]) == 2
    assert "no query 'nothing'" in capsys.readouterr().err
