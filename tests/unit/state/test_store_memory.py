import pyarrow as pa
import pytest

from midstream.model.errors import CheckpointError
from midstream.model.manifest import ChunkRef
from midstream.state.memory_store import MemoryStore


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(values, pa.int64())})


def put(store: MemoryStore, name: str, rows: pa.RecordBatch) -> ChunkRef:
    final, size, checksum = store.put(name, rows)
    return ChunkRef(final, rows.num_rows, size, checksum)


def test_gives_back_the_very_batch() -> None:
    store, rows = MemoryStore(), batch(1, 2)
    ref = put(store, "A/1-x", rows)
    assert store.get(ref) is rows
    assert ref.bytes == 16


def test_a_replayed_step_gets_the_same_names() -> None:
    store = MemoryStore()
    assert put(store, "A/1-x", batch(1)) == put(store, "A/1-x", batch(1))
    assert len(store) == 1


def test_two_folds_from_one_manifest_do_not_see_each_other() -> None:
    store = MemoryStore()
    one, two, three = (put(store, "A/1-x", batch(value)) for value in (1, 2, 3))
    assert [store.get(ref).to_pydict() for ref in (one, two, three)] == [{"k": [1]}, {"k": [2]}, {"k": [3]}]
    assert put(store, "A/1-x", batch(2)) == two


def test_forgets() -> None:
    store = MemoryStore()
    one, two = put(store, "A/1-x", batch(1)), put(store, "A/2-x", batch(2))
    store.forget([one.name, "never put"])
    assert store.get(two).num_rows == 1
    with pytest.raises(CheckpointError, match=r"A/1-x is not in memory.*Remedy"):
        store.get(one)
