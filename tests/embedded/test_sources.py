"""What an embedded job reads: folders and buckets, files of every format, the results of another job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.embedded.folder_source import FolderSource
from midstream.embedded.job_run import FileJob
from midstream.model.errors import WriteError
from midstream.model.manifest import Manifest
from midstream.sql.job_file import parse_job
from midstream.sql.job_specs import SourceSpec
from midstream.storage.local import LocalStorage
from midstream.storage.places import storage_at
from tests.extension import distribution

SECOND = 1_000_000


def rows(*keys: int) -> pa.Table:
    times = pa.array([k * SECOND for k in keys], pa.timestamp("us"))
    return pa.table({"k": pa.array(keys, pa.int64()), "ts": times, "v": [k / 2 for k in keys]})


def parquet(table: pa.Table) -> pa.Buffer:
    data = pa.BufferOutputStream()
    pq.write_table(table, data)
    return data.getvalue()


def job(checkpoint: str | Path, path: str | Path, out: str | Path, format: str = "parquet", more: str = "") -> FileJob:
    """A job that puts out what it reads."""
    return FileJob(
        parse_job(f"""
            checkpoint = "{checkpoint}"
            [streams.A]
            format = "{format}"
            path = "{path}"
            timestamp = "ts"
            {more}
            [queries.q]
            sql = "SELECT A.k, A.v, A.ts FROM A [RANGE 1 SECOND]"
            sink = {{ path = "{out}" }}""")
    )


def found(out: str | Path) -> list[tuple[int, float]]:
    """Keys and values in a sink, in the order of steps."""
    storage = storage_at(out)
    files = sorted(name for name, _ in storage.walk() if name.startswith("step="))
    tables = [pq.read_table(pa.BufferReader(storage.read(name))) for name in files]
    return [(row["k"], row["v"]) for table in tables for row in table.to_pylist()]


def every(*keys: int) -> list[tuple[int, float]]:
    return [(k, k / 2) for k in keys]


def test_orc(tmp_path: Path) -> None:
    """Its types are the stream's, its times in microseconds; a column that a file lacks is NULL."""
    folder = tmp_path / "in"
    folder.mkdir()
    pyarrow.orc.write_table(rows(1, 2), folder / "1.orc")
    with job(tmp_path / "ckpt", folder, tmp_path / "out", "orc") as running:
        assert running.step()
        pyarrow.orc.write_table(rows(3).drop_columns(["v"]), folder / "2.orc")
        assert running.step()
        assert not running.step()
    assert found(tmp_path / "out") == [*every(1, 2), (3, None)]
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        assert engine.manifest.streams["A"].columns == rows(1).schema


def test_nested_values_of_json_lines_are_judged_one_by_one(tmp_path: Path) -> None:
    """Whatever file they are in; numbers are as they are written."""
    folder = tmp_path / "in"
    folder.mkdir()
    times = '"ts": "2026-01-01T00:00:00Z"'
    (folder / "1.json").write_text(f'{{"k": 1, "v": {{"a": 12345678901234567890.1}}, {times}}}\n')
    (folder / "2.json").write_text(f'{{"k": 2, "v": {{"a": "x"}}, {times}}}\n{{"k": 3, "v": {{"a": "4"}}, {times}}}\n')
    schema = 'schema = "k BIGINT, v STRUCT<a: DECIMAL(38, 1)>, ts TIMESTAMP"'
    with job(tmp_path / "ckpt", folder, tmp_path / "out", "json", schema) as running:
        assert running.step()
    read = [(key, str(value["a"])) for key, value in found(tmp_path / "out")]  # type: ignore[index]
    assert read == [(1, "12345678901234567890.1"), (3, "4.0")]
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        (dead,) = engine.dead_letters["A"].to_pylist()
    assert (dead["k"], dead["v"]) == ("2", '{"a": "x"}') and "column 'v': cannot read" in dead["_reason"]


@pytest.mark.parametrize("pattern", ["in", "in/*.parquet", "i?/[0-9]*", "*"])
def test_a_bucket_is_read_as_a_folder_is(bucket: str, pattern: str) -> None:
    """Also the checkpoint and the sink may lie there; each object is read once, also after a restart."""
    storage = storage_at(f"{bucket}/job")

    def step() -> None:
        with job(f"{bucket}/ckpt", f"{bucket}/job/{pattern}", f"{bucket}/out") as running:
            assert running.step()
            assert not running.step()

    storage.write("in/1.parquet", parquet(rows(1, 2)))
    storage.write("in/2.parquet", parquet(rows(3)))
    storage.write("in/_half.parquet", parquet(rows(7)))
    step()
    storage.write("in/3.parquet", parquet(rows(4, 5)))
    step()
    assert found(f"{bucket}/out") == every(1, 2, 3, 4, 5)


def test_one_object(bucket: str, tmp_path: Path) -> None:
    storage_at(bucket).write("only.parquet", parquet(rows(1)))
    storage_at(bucket).write("only.parquet.other", parquet(rows(2)))
    with job(tmp_path / "ckpt", f"{bucket}/only.parquet", tmp_path / "out") as running:
        assert running.step()
    assert found(tmp_path / "out") == every(1)


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_the_results_of_another_job(place: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every result once, step by step, whenever either job runs and whatever is started anew."""
    root = str(tmp_path) if place == "folder" else request.getfixturevalue("bucket")
    folder = tmp_path / "in"
    folder.mkdir()

    def first(*keys: int) -> None:
        pq.write_table(rows(*keys), folder / f"{keys[0]}.parquet")
        with job(f"{root}/first", folder, f"{root}/out") as running:
            assert running.step()

    def second() -> list[int]:
        """How many results there are after each step."""
        options = 'options = { query = "q", maxFilesPerTrigger = 1 }'
        counts = []
        with job(f"{root}/second", f"{root}/first", f"{root}/again", "midstream", options) as running:
            while running.step():
                counts.append(len(found(f"{root}/again")))
        return counts

    first(1, 2)
    first(3)
    assert second() == [2, 3]
    assert second() == []
    first(4, 5)
    assert second() == [5]
    assert found(f"{root}/again") == every(1, 2, 3, 4, 5)


def results_of(tmp_path: Path, options: str = "") -> FileJob:
    """A second job, which puts out the results of the first that it reads."""
    more = f'options = {{ query = "q"{options} }}\nlateness = "1 day"'
    return job(tmp_path / "second", tmp_path / "first", tmp_path / "again", "midstream", more)


def first_job(tmp_path: Path, *files: tuple[int, ...]) -> None:
    """Give the first job files, each a step."""
    (tmp_path / "in").mkdir(exist_ok=True)
    more = 'schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"\nlateness = "1 day"'
    with job(tmp_path / "first", tmp_path / "in", tmp_path / "out", more=more) as running:
        for keys in files:
            pq.write_table(rows(*keys), tmp_path / "in" / f"{keys[0]}.parquet")
            assert running.step()


@pytest.mark.parametrize("restarted", [False, True])
def test_results_of_a_job_that_went_back_behind_them(tmp_path: Path, restarted: bool) -> None:
    """What was read is no longer so: that is said, and no row is lost or doubled without a word."""
    first_job(tmp_path, (1,), (2,), (3,))
    with results_of(tmp_path) as second:
        assert second.step()
        for file in ("2", "3"):
            (tmp_path / "in" / f"{file}.parquet").unlink()
        ms.open(tmp_path / "first").rewind(0)
        first_job(tmp_path, (7,), (8,), (9,))
        if not restarted:
            with pytest.raises(ms.CheckpointError, match=r"gave up step 2, but this job has read.*rewind"):
                second.step()
    with results_of(tmp_path) as second, pytest.raises(ms.CheckpointError, match=r"gave up step 2"):
        second.step()
    assert found(tmp_path / "again") == every(1, 2, 3)
    ms.open(tmp_path / "second").rewind(-1)
    with results_of(tmp_path) as second:
        assert second.step()
    assert found(tmp_path / "again") == every(1, 7, 8, 9)


def test_results_of_a_job_that_went_back_before_they_were_read(tmp_path: Path) -> None:
    first_job(tmp_path, (1,), (2,), (3,))
    with results_of(tmp_path, ", maxFilesPerTrigger = 1") as second:
        assert second.step()
        (tmp_path / "in" / "3.parquet").unlink()
        ms.open(tmp_path / "first").rewind(1)
        assert second.step()
        assert not second.step()
        first_job(tmp_path, (7,))
        assert second.step()
    assert found(tmp_path / "again") == every(1, 2, 7)


def test_a_job_that_reads_results_goes_on_from_the_last_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists no folder that grows, and what it notes does not either; yet it can go back to each step it keeps."""
    first_job(tmp_path, *((k,) for k in range(40)))
    with results_of(tmp_path, ", maxFilesPerTrigger = 1") as second:
        for _ in range(33):
            assert second.step()
    assert len(list((tmp_path / "second" / "sources" / "A").iterdir())) <= 12
    ms.open(tmp_path / "second").rewind(25)
    listed = list[str]()
    names, walk = LocalStorage.names, LocalStorage.walk
    monkeypatch.setattr(LocalStorage, "walk", lambda self, folder="": listed.append(self.url) or walk(self, folder))
    monkeypatch.setattr(
        LocalStorage, "names", lambda self, folder="": listed.append(self.path(folder)) or names(self, folder)
    )
    with results_of(tmp_path, ", maxFilesPerTrigger = 1") as second:
        while second.step():
            pass
        assert found(tmp_path / "again") == every(*range(40))
        listed.clear()
        first_job(tmp_path, (40,))
        own = len([place for place in listed if place == str(tmp_path / "out")])
        assert second.step()
        assert not second.step()
    assert listed.count(str(tmp_path / "out")) == own
    assert found(tmp_path / "again") == every(*range(41))


def test_a_note_that_arrives_late_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a first attempt at a step had written of the files that it read says nothing of what the second read."""
    write, add, sent = LocalStorage.write, ManifestLog.add, list[tuple[LocalStorage, str, bytes]]()

    def seen(self: LocalStorage, name: str, data: bytes) -> None:
        if "/sources/" in self.path(name):
            sent.append((self, name, data))
        write(self, name, data)

    def failing(self: ManifestLog, manifest: Manifest) -> None:
        if manifest.step == 1:
            monkeypatch.undo()
            raise WriteError("the store does not answer", place="manifest", remedy="wait")
        add(self, manifest)

    pages = tmp_path / "in"
    pages.mkdir()
    pq.write_table(rows(1), pages / "1.parquet")
    with job(tmp_path / "ckpt", pages, tmp_path / "out") as running:
        assert running.step()
        monkeypatch.setattr(LocalStorage, "write", seen)
        monkeypatch.setattr(ManifestLog, "add", failing)
        pq.write_table(rows(2), pages / "2.parquet")
        with pytest.raises(WriteError, match="does not answer"):
            running.step()
        pq.write_table(rows(3), pages / "3.parquet")
        assert running.step()
        for request in sent:
            write(*request)
    for k in (4, 5):
        with job(tmp_path / "ckpt", pages, tmp_path / "out") as running:
            assert not running.step()
            pq.write_table(rows(k), pages / f"{k}.parquet")
            assert running.step()
    assert found(tmp_path / "out") == every(1, 2, 3, 4, 5)


def test_a_damaged_note_says_how_no_row_is_doubled(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with job(
        tmp_path / "ckpt", folder, tmp_path / "out", more='schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"'
    ) as running:
        for k in (1, 2, 3):
            pq.write_table(rows(k), folder / f"{k}.parquet")
            assert running.step()
    note = tmp_path / "ckpt" / "sources" / "A" / "000001-000000000001.jsonl"
    note.write_text('{"file"')
    remedy = r"notes of files.*midstream rewind CKPT 0;.*reads the files of its step again"
    with pytest.raises(ms.CheckpointError, match=remedy):
        job(tmp_path / "ckpt", folder, tmp_path / "out")
    ms.open(tmp_path / "ckpt").rewind(0)
    with job(tmp_path / "ckpt", folder, tmp_path / "out") as running:
        assert running.step()
    assert found(tmp_path / "out") == every(1, 2, 3)


@pytest.mark.parametrize("way", ["empty", "missing", "below", "hidden"])
def test_a_folder_that_is_away_for_a_while(tmp_path: Path, way: str) -> None:
    """What was read of it is known when it is back, however many steps read other folders meanwhile."""
    day, other = tmp_path / "in" / "day", tmp_path / "in" / "other"
    for folder in (day, other):
        folder.mkdir(parents=True)
    for k in (1, 2):
        pq.write_table(rows(k), day / f"{k}.parquet")
    folders = {"below": [tmp_path / "in" / "*"]}.get(way, [day, other])
    streams = "".join(
        f"""
        [streams.S{number}]
        format = "parquet"
        path = "{folder}"
        timestamp = "ts"
        schema = "k BIGINT, ts TIMESTAMP, v DOUBLE"
        lateness = "1 day"
        [queries.q{number}]
        sql = "SELECT S{number}.k, S{number}.v FROM S{number} [RANGE 1 SECOND]"
        sink = {{ path = "{tmp_path}/out{number}" }}
        """
        for number, folder in enumerate(folders)
    )
    with FileJob(parse_job(f'checkpoint = "{tmp_path}/ckpt"\n{streams}')) as running:
        assert running.step()
        day.rename(tmp_path / "away")
        if way != "missing":
            day.mkdir()
        if way == "hidden":
            (day / ".not_mounted").touch()
        for k in range(10, 20):
            pq.write_table(rows(k), other / f"{k}.parquet")
            assert running.step()
        if way != "missing":
            for file in day.iterdir():
                file.unlink()
            day.rmdir()
        (tmp_path / "away").rename(day)
        assert not running.step()
    assert sorted(found(tmp_path / "out0"))[:2] == every(1, 2)


def test_a_folder_of_a_pattern_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    for day in range(18):
        (tmp_path / "in" / f"day={day:02}").mkdir(parents=True)
        pq.write_table(rows(day), tmp_path / "in" / f"day={day:02}" / "1.parquet")
    with job(
        tmp_path / "ckpt", tmp_path / "in" / "*", tmp_path / "out", more="options.maxFilesPerTrigger = 1"
    ) as running:
        for day in range(17):
            if day > 1:
                shutil.rmtree(tmp_path / "in" / f"day={day - 2:02}")
            assert running.step()
    assert len(list((tmp_path / "ckpt" / "sources" / "A").iterdir())) <= 3
    assert found(tmp_path / "out") == every(*range(17))


@pytest.mark.parametrize(
    ("options", "words"),
    [("", "does not name the checkpoint and the query"), ('options = { query = "z" }', "no query 'z'.*are: q")],
    ids=["no query", "an unknown query"],
)
def test_results_that_there_are_not(tmp_path: Path, options: str, words: str) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(rows(1), tmp_path / "in" / "1.parquet")
    with job(tmp_path / "first", tmp_path / "in", tmp_path / "out") as running:
        running.step()
    with pytest.raises(ms.MidstreamError, match=words):
        job(tmp_path / "second", tmp_path / "first", tmp_path / "again", "midstream", options)
    assert not (tmp_path / "second").exists()


def test_a_bound_of_files_that_is_no_number_is_refused() -> None:
    spec = SourceSpec("csv", "in", "k BIGINT", "k", 0, None, {"maxFilesPerTrigger": "many"})
    with pytest.raises(ms.InputError, match=r"maxFilesPerTrigger is not a whole number \(at \[streams.A\]\)"):
        FolderSource.of("A", spec, None)


COUNTING = '''
import pyarrow as pa
from midstream.embedded.file_source import FileSource

class Counting(FileSource):
    """Numbers, three in each piece."""

    name = "counting"
    most = 1
    columns = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])

    @staticmethod
    def of(name, spec, known=None):
        found = Counting()
        found.pieces = int(spec.options["pieces"])
        return found

    def waiting(self, read):
        return tuple(sorted({str(at) for at in range(self.pieces)} - set(read)))

    def read(self, files):
        keys = [3 * int(file) + at for file in files for at in range(3)]
        return pa.table({"k": keys, "ts": pa.array([key * 1_000_000 for key in keys], pa.timestamp("us"))})

    def forgettable(self, read, kept):
        return set()
'''


def test_another_package_brings_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"midstream.sources": {"counting": "counting_source:Counting"}}
    monkeypatch.syspath_prepend(str(distribution(tmp_path / "site", own, counting_source=COUNTING)))
    for steps in (2, 1):  # The second engine goes on where the first one stopped.
        with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
            engine.source("A", "counting", "ts", options={"pieces": "3"})
            engine.add_query("q", "SELECT k FROM A", sink=ms.sinks.files(tmp_path / "out"))
            assert all(engine.pull() is not None for _ in range(steps))
    files = sorted((tmp_path / "out").glob("step=*/*.parquet"))
    assert [k for file in files for k in pq.read_table(file)["k"].to_pylist()] == list(range(9))
