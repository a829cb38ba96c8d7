"""Messages of a partition on their way to the steps that take them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from midstream.embedded import kafka_messages
from midstream.embedded.kafka_messages import Pile

confluent_kafka = pytest.importorskip("confluent_kafka")


def message(offset: int, value: bytes | None) -> Any:
    key = None if offset % 3 else b"%d" % offset
    return confluent_kafka.Message(topic="t", value=value, key=key, offset=offset, timestamp=(1, offset * 10))


def rows(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert all(len(batch) for batch in batches)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_pile_gives_each_message_once_and_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is added and taken: by rows, by bytes, up to an offset; with gaps, and without values."""
    rng = random.Random(seed)
    monkeypatch.setattr(kafka_messages, "PIECE", rng.choice([1, 3, 10, 1000]))
    pile, waiting, offset = Pile({"key", "timestamp"}), list[tuple[Any, ...]](), 0
    for _ in range(60):
        if rng.random() < 0.5:
            run = []
            for _ in range(rng.randint(1, 9)):
                offset += 1 if rng.random() < 0.9 else rng.randint(2, 4)
                value = None if rng.random() < 0.1 else b"x" * rng.choice([0, 1, 5, 20])
                run.append(message(offset, value))
                waiting.append((offset, value, run[-1].key(), offset * 10, 1))
            pile.add(run)
            assert pile.end == offset + 1
        elif rng.random() < 0.7:
            most, size = rng.randint(1, 12), rng.choice([1, 5, 30, 10**9])
            taken, bytes_ = 0, 0
            while taken < min(most, len(waiting)) and bytes_ < size:
                bytes_ += len(waiting[taken][1] or b"")
                taken += 1
            assert rows(pile.take(most, size)) == waiting[:taken]
            waiting = waiting[taken:]
        else:
            end = rng.randint(offset - 8, offset + 2)
            assert rows(pile.take_to(end)) == [one for one in waiting if one[0] < end]
            waiting = [one for one in waiting if one[0] >= end]
        assert pile.rows == len(waiting)
        assert pile.size == sum(len(one[1] or b"") for one in waiting)
