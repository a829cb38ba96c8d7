"""What a chunk's index finds: the pairs that a look at every pair finds, each once, however often codes are equal."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.expr.expression import Column
from midstream.operators.join_condition import JoinCondition
from midstream.ring import chunk_index
from midstream.ring.chunk_index import ChunkIndex
from midstream.ring.columns import Words
from midstream.state.base_state import TIME

LEFT, RIGHT = Column(pa.int64(), "A", "x"), Column(pa.int64(), "B", "x")
CONDITIONS = {
    "hash": JoinCondition("hash", (LEFT,), (RIGHT,), None, None, (), ()),
    "band": JoinCondition("band", (LEFT,), (RIGHT,), -1.0, 1.0, (), ()),
    "scan": JoinCondition("scan", (), (), None, None, (), ()),
}
NUMBERS = st.integers(-3, 3)
ROWS = st.lists(st.tuples(st.none() | NUMBERS, st.integers(0, 9)), max_size=12)
VISITS = st.lists(st.tuples(NUMBERS, st.integers(0, 9), st.integers(0, 9)), max_size=12)


@pytest.mark.parametrize("often", [4, 0], ids=["times are looked at", "times are searched for"])
@pytest.mark.parametrize("index", CONDITIONS)
@settings(deadline=None)
@given(rows=ROWS, visits=VISITS)
def test_pairs_are_those_of_a_look_at_every_pair(
    often: int, index: str, rows: list[tuple[int | None, int]], visits: list[tuple[int, int, int]]
) -> None:
    on, before = CONDITIONS[index], chunk_index.OFTEN
    batch = pa.RecordBatch.from_pydict({
        "x": pa.array([x for x, _ in rows], pa.int64()),
        TIME: pa.array([ts for _, ts in rows], pa.int64()),
    })  # fmt: skip
    codes, low, high = (np.array([one[at] for one in visits], np.int64) for at in range(3))
    chunk_index.OFTEN = often
    try:
        found = sorted(_pairs(on, batch, codes, low, high))
    finally:
        chunk_index.OFTEN = before
    assert found == [
        (at, place)
        for at, (code, first, last) in enumerate(visits)
        for place, (x, ts) in enumerate(rows)
        if first <= ts <= last
        and (index == "scan" or (x is not None and abs(code - x) <= (1 if index == "band" else 0)))
    ]


def _pairs(on: JoinCondition, batch: pa.RecordBatch, codes: Words, low: Words, high: Words) -> list[tuple[int, int]]:
    none = np.zeros_like(codes)
    blocks = ChunkIndex.of(on, batch).candidates(on, none if on.index == "scan" else codes, low, high)
    return [pair for visit, row in blocks for pair in zip(visit.tolist(), row.tolist(), strict=True)]
