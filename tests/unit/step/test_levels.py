"""How many queries stand below one that reads answers is found once for each, however often each is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.units import answers
from midstream.units.answers import streams_by_level

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
    monkeypatch.setattr(answers, "query_of", lambda entry: looked_at.append(entry.sql) or entry.query)
    levels = streams_by_level(manifest)
    assert [[stream.name for stream in level] for level in levels[1:]] == [[f"q{n + 1}"] for n in range(DEPTH - 1)]
    assert len(looked_at) == len({*looked_at}) == DEPTH - 1


def test_so_are_the_pushed_streams_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of which each joins the answers of the two before: there are as many ways down as Fibonacci's numbers."""
    engine, looked_at = ms.Engine(), list[str]()
    engine.create_stream("q0", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), timestamp="ts")
    engine.add_query("q1", "SELECT k FROM q0")
    for number in range(1, DEPTH):
        read = f"q{number} [RANGE 2 SECONDS] a, q{number - 1} [RANGE 2 SECONDS] b"
        engine.add_query(f"q{number + 1}", f"SELECT a.k FROM {read} WHERE a.k = b.k")
    manifest = engine._upcoming()
    monkeypatch.setattr(answers, "query_of", lambda entry: looked_at.append(entry.sql) or entry.query)
    assert answers.pushed_below(manifest, [f"q{DEPTH - 1}"]) == {"q0"}
    assert len(looked_at) == len({*looked_at}) == DEPTH - 1
