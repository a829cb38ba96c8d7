"""What an embedded job reads: folders and buckets, files of every format, the results of another job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.engine.job_run import FileJob
from midstream.language.job_file import parse_job
from midstream.state.store.places import storage_at

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


@pytest.mark.parametrize(
    ("options", "words"),
    [("", "does not say whose results"), ('options = { query = "z" }', "no query 'z'.*are: q")],
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
