"""Streams and aliases may have any name that SQL can quote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.sharing.discovery import schemes

NAMES = (
    "my orders",
    "a(b",
    "x` y",
    '7" nails',
    "a|b:c",
    "a,b",
    "[a]",
    "a/b",
    "it's",
    "a+b",
    "..",
    "Bestellungen für öS",
)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def results(folder: Path, stream: str, alias: str, sharing: str) -> list[pa.Table]:
    """The answers of a query that is migrated, of another that shares its rows, and of the first after a restart."""
    one, two = (f"SELECT {quoted(alias)}.k, B.ts FROM {quoted(stream)} AS {quoted(alias)}, B, C"
                f" WHERE {quoted(alias)}.k = B.k AND B.k = C.k WINDOW {size} SECONDS" for size in (5, 9))  # fmt: skip
    rows = pa.table({"k": [1, 2, 2], "ts": pa.array([0, 1, 2], pa.timestamp("us"))})
    found = []
    with ms.Engine(checkpoint=folder, sharing=sharing) as engine:
        for name in (stream, "B", "C"):
            engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("one", one)
        engine.add_query("two", two)
        found += engine.push({stream: rows, "B": rows, "C": rows}).values()
        if sharing != "push_down":  # Its plans do not move.
            engine.migrate("one", f"({quoted(alias)} (B C))", strategy="moving_state")
            found += engine.push({stream: rows, "B": rows, "C": rows}).values()
            engine.migrate("one", f"[{quoted(alias)}: B C | B: C {quoted(alias)} | C: B {quoted(alias)}]")
    with ms.Engine(checkpoint=folder, sharing=sharing) as engine:
        found += engine.push({stream: rows, "B": rows, "C": rows}).values()
        assert "one" in engine.explain("one")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_of_any_name_is_joined(tmp_path: Path, name: str) -> None:
    plain = results(tmp_path / "plain", "A", "A", "auto")
    assert plain[0].num_rows > 0
    assert results(tmp_path / "odd", name, name, "auto") == plain


@pytest.mark.parametrize("sharing", schemes())
def test_an_alias_may_be_quoted_however_queries_share(tmp_path: Path, sharing: str) -> None:
    plain = results(tmp_path / "plain", "A", "A", sharing)
    assert plain[0].num_rows > 0
    assert results(tmp_path / "odd", "A", 'an (odd) "one"', sharing) == plain
