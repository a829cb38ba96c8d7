"""How many queries stand below one that reads answers is found once for each, however often each is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.step import answers
from midstream.step.answers import streams_by_level

DEPTH = 12


@pytest.fixture
def engine() -> ms.Engine:
    """Queries of which each joins the answers of the one before with themselves."""
    engine = ms.Engine()
    engine.create_stream("q0", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), timestamp="ts")
    for number in range(DEPTH):
        read = f"q{number} [RANGE 2 SECONDS]"
        engine.add_query(f"q{number + 1}", f"SELECT a.k FROM {read} a, {read} b WHERE a.k = b.k")
    return engine


def test_each_text_is_looked_at_once(engine: ms.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    manifest = engine._upcoming()
    original = answers.parsed
    monkeypatch.setattr(answers, "parsed", lambda manifest, sql: looked_at.append(sql) or original(manifest, sql))
    levels = streams_by_level(manifest)
    assert [[stream.name for stream in level] for level in levels[1:]] == [[f"q{n + 1}"] for n in range(DEPTH - 1)]
    assert len(looked_at) == len({*looked_at}) == DEPTH - 1
