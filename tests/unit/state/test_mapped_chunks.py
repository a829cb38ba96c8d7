"""Chunks of an engine with a checkpoint: large ones are mapped once they are written, and what is read is at hand."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import CheckpointError
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, StateListing
from midstream.state.chunk_store import store_chunk
from midstream.state.sorted_run import SortedRun
from midstream.storage.files import FileStore, forget_opened
from midstream.storage.memory_limit import MemoryLimit
from midstream.storage.write_back import LARGE, WriteBackStore
from tests.unit.state.chunk_files import linux_only

LANE = LaneId("single", 0)


def is_mapped(batch: pa.RecordBatch) -> bool:
    """Whether the columns of a batch lie in mapped files of chunks."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if ".arrow" in line]
    spans = [tuple(int(end, 16) for end in line[0].split("-")) for line in lines]
    places = [column.buffers()[1].address for column in batch.columns]
    return all(any(begin <= place < end for begin, end in spans) for place in places)


def stored(store: WriteBackStore, rows: int) -> ChunkRef:
    batch = pa.record_batch({"k": np.arange(rows)})
    ref = store_chunk(store, "000007-rows", batch)
    id = StateId.parse("A.68d08664235b.rows")
    manifest = store.written(Manifest(step=7, lane_states={LANE: LaneState({id: StateListing((ref,), rows)})}))
    (found,) = manifest.lane_states[LANE].states[id].chunks
    assert store.get(found).equals(batch)
    return found


@linux_only
def test_a_large_chunk_is_mapped_once_it_is_written(tmp_path: Path) -> None:
    store = WriteBackStore(FileStore(tmp_path))
    assert is_mapped(store.get(stored(store, LARGE // 8 + 1)))


@linux_only
def test_a_small_one_stays_in_memory(tmp_path: Path) -> None:
    store = WriteBackStore(FileStore(tmp_path))
    assert not is_mapped(store.get(stored(store, 3)))


@linux_only
def test_under_a_limit_small_ones_are_mapped_too(tmp_path: Path) -> None:
    store = WriteBackStore(FileStore(tmp_path, limit=MemoryLimit(1)))
    assert is_mapped(store.get(stored(store, 3)))


def test_what_is_read_stays_at_hand_as_long_as_it_is_listed(tmp_path: Path) -> None:
    ref = stored(WriteBackStore(FileStore(tmp_path)), 3)
    store = WriteBackStore(FileStore(tmp_path))
    assert ref.name not in store.in_memory
    assert store.get(ref) is store.get(ref)
    assert ref.name in store.in_memory
    store.retain(())
    assert ref.name not in store.in_memory


@linux_only
def test_the_runs_that_a_listing_knows_are_of_the_mapped_file(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push({"A": rows(COUNT), "B": rows(COUNT)})
        (lane,) = engine.manifest.lane_states.values()
        for id, listing in lane.states.items():
            assert listing.known is not None, id
            for run, ref in zip(listing.known[1], listing.chunks, strict=True):
                assert ref.bytes > LARGE, id
                if isinstance(run, SortedRun):
                    address = run.combinations.words.__array_interface__["data"][0]
                    assert is_mapped(pa.record_batch({"words": _at(address)}))
                else:
                    assert is_mapped(run.batch) and run.held is None


@linux_only
def test_files_removed_or_replaced_under_a_running_engine_change_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        engine.push({"A": rows(COUNT)})
        for number, file in enumerate(chunks(tmp_path)):
            if number % 2:
                file.unlink()
            else:
                other = file.with_suffix(".new")
                other.write_bytes(b"")
                other.rename(file)
        found = engine.push({"B": rows(COUNT)})["q"]
        assert found.num_rows == COUNT


@linux_only
def test_a_chunk_cut_short_under_a_running_engine_is_named_by_the_next_one(tmp_path: Path) -> None:
    """The system ends the process that reads what is not there any more; the step it was in did not happen."""
    ended = subprocess.run([sys.executable, "-c", CHILD, tmp_path], check=False, stderr=subprocess.DEVNULL)
    assert ended.returncode == -signal.SIGBUS
    cut = [file for file in chunks(tmp_path) if not file.stat().st_size]
    with opened(tmp_path, take_over=True) as engine:
        assert engine.manifest.step == 0
        with pytest.raises(CheckpointError, match="has 0 bytes instead of") as caught:
            engine.push({"B": rows(COUNT)})
        assert caught.value.place in map(str, cut)
        assert "restore the file from a backup" in caught.value.remedy


def test_what_is_cut_short_before_it_is_mapped_is_an_error(tmp_path: Path) -> None:
    refs = [stored(WriteBackStore(FileStore(tmp_path), small=small), 3) for small in (0, 1 << 20)]
    for ref, file in zip(refs, [tmp_path / f"{ref.name.partition('@')[0]}.arrow" for ref in refs], strict=True):
        os.truncate(file, 100)
        forget_opened([str(file)])
        with pytest.raises(CheckpointError, match=r"has 100 bytes instead of") as caught:
            WriteBackStore(FileStore(tmp_path)).files.mapped(ref)
        assert caught.value.place == str(file)


COUNT = 1 << 16

CHILD = """
import os, sys
from pathlib import Path
from tests.unit.state.test_mapped_chunks import COUNT, chunks, opened, rows
folder = Path(sys.argv[1])
engine = opened(folder)
engine.push({"A": rows(COUNT)})
for file in chunks(folder):
    os.truncate(file, 0)
engine.push({"B": rows(COUNT)})
"""


def opened(folder: Path, *, take_over: bool = False) -> ms.Engine:
    engine = ms.Engine(checkpoint=folder / "ckpt", durable=False, take_over=take_over)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    engine.add_query("q", "SELECT A.k, B.v FROM A [RANGE 9 HOURS], B [RANGE 9 HOURS] WHERE A.k = B.k")
    return engine


def rows(count: int) -> pa.Table:
    return pa.table({"k": np.arange(count), "ts": pa.array(np.arange(count), pa.timestamp("us")), "v": [0.5] * count})


def chunks(folder: Path) -> list[Path]:
    found = sorted((folder / "ckpt" / "store").rglob("*.arrow"))
    assert found
    return found


def _at(address: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), 1, [None, pa.foreign_buffer(address, 8)])
