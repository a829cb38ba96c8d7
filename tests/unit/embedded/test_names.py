"""Streams and aliases may have any name that SQL can quote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.model.events import CommandRefused
from midstream.sharing.schemes.scheme_contract import schemes

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


NO_NAMES: tuple[Any, ...] = (None, "", 3, b"A", [], "\ud800")


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
@pytest.mark.parametrize("on_checkpoint", [False, True], ids=["in memory", "on a checkpoint"])
def test_what_is_no_name_is_refused(tmp_path: Path, on_checkpoint: bool, name: Any) -> None:
    with ms.Engine(checkpoint=tmp_path if on_checkpoint else None) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        for call in (
            lambda: engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts"),
            lambda: engine.add_query(name, "SELECT A.k FROM A"),
            lambda: engine.table(name, [{"k": 1}]),
        ):
            with pytest.raises(ms.QueryError, match="cannot be called") as refused:
                call()
            assert refused.value.place and refused.value.remedy
        assert not engine.manifest.pending and list(engine.manifest.streams) == ["A"]
        drops = (engine.drop_query, engine.drop_stream, engine.drop_table)
        for call_by_name in (*drops, engine.explain, engine.migration, engine.plans):
            with pytest.raises(ms.QueryError, match="there is no"):
                call_by_name(name)
        with pytest.raises(ms.QueryError, match="there is no"):
            engine.migrate(name, "A")
        assert engine.push({"A": [{"k": 1, "ts": "2020-01-01"}]}) == {}


def test_a_command_that_names_nothing_is_refused_when_it_is_taken(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.push()
        Checkpoint.open(tmp_path).commands.append(AddQuery("", "SELECT A.k FROM A"))
        assert engine.push() == {}
        assert any(isinstance(event, CommandRefused) for event in engine.events)


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
