"""Wrong use: the error names the place and the remedy, and nothing has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import (
    CheckpointError,
    InputError,
    LanguageError,
    MidstreamError,
    PlanError,
    QueryError,
    SinkError,
    StrategyError,
)
from midstream.ring.shared_queries import SERVES
from midstream.state.lineage import ARRIVED, LINEAGE
from midstream.state.rows import NUMBER
from tests.unit.building import DDL, both, engine, table

JOIN = "SELECT A.k, A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS"
Use = Callable[[Any], object]

SELF_NAMED = pa.schema([("_ts", pa.int64()), ("ts", pa.int64())])

INTERNAL = (NUMBER, LINEAGE, ARRIVED, SERVES)
"""Columns that stand beside those of a stream in its kept rows."""

WRONG: dict[str, tuple[Use, type[MidstreamError], str]] = {
    "unknown stream": (lambda e: e.push({"Z": table([1])}), InputError, "no stream 'Z'"),
    "no table": (lambda e: e.push({"A": table([1]).to_pydict()}), InputError, "a dict cannot be the rows of "
    "stream 'A'"),
    "missing column": (lambda e: e.push({"A": table([1]).drop_columns(["v"])}), InputError, "lacks 'v'"),
    "one good, one bad table": (
        lambda e: e.push({"A": table([8], k=[8]), "B": table([1]).drop_columns(["k"])}), InputError, "lacks 'k'",
    ),
    "stream twice": (lambda e: e.create_stream("A", DDL, "ts"), InputError, "there is already a stream 'A'"),
    "no such timestamp": (lambda e: e.create_stream("Z", DDL, "time"), InputError, "no timestamp column 'time'"),
    "timestamp of a wrong type": (lambda e: e.create_stream("Z", DDL, "v"), InputError, "cannot be a timestamp"),
    "reserved column": (lambda e: e.create_stream("Z", SELF_NAMED, "ts"), InputError, "'_ts' is reserved"),
    **{
        f"column {name}": (
            lambda e, name=name: e.create_stream("Z", f"{name} INT, ts TIMESTAMP", "ts"), InputError, "is reserved",
        )
        for name in INTERNAL
    },
    **{
        f"column {name} of a subquery": (
            lambda e, name=name: e.add_query("p", f"SELECT x.{name} FROM ({JOIN.replace('AS a', f'AS {name}')}) AS x"),
            InputError,
            "is reserved",
        )
        for name in INTERNAL
    },
    "column twice": (lambda e: e.create_stream("Z", "k INT, k INT", "k"), LanguageError, "'k' is declared twice"),
    "no schema": (lambda e: e.create_stream("Z", "k INT,, ts", "ts"), LanguageError, ""),
    "schema of nothing": (lambda e: e.create_stream("Z", None, "ts"), LanguageError, "a NoneType is not a schema"),
    "schema of a dict": (lambda e: e.create_stream("Z", {"k": "INT"}, "ts"), LanguageError, "a dict is not a schema"),
    "unit of a list": (lambda e: e.create_stream("Z", "ts BIGINT", "ts", unit=[]), InputError, "have the unit []"),
    "query of nothing": (lambda e: e.add_query("p", None), LanguageError, "be a string, not NoneType"),
    "query of a list": (lambda e: e.add_query("p", []), LanguageError, "be a string, not list"),
    "another query of nothing": (lambda e: e.change_query("q", None), LanguageError, "be a string, not NoneType"),
    "operator of a number": (lambda e: e.add_query("p", JOIN, operator=3), QueryError, "3 is not the name of"),
    "operator of a list": (lambda e: e.migrate("q", operator=[]), QueryError, "[] is not the name of"),
    "options of a number": (
        lambda e: e.add_query("p", JOIN, operator="a:B", operator_options=3), QueryError, "be a mapping, not int",
    ),
    "options of a text": (
        lambda e: e.add_query("p", JOIN, spread="psp_d", nodes=2, spread_options="x"), QueryError, "mapping, not str",
    ),
    "save nowhere": (lambda e: e.save(None), SinkError, "a NoneType is not a path"),
    "save to a number": (lambda e: e.save(3), SinkError, "a int is not a path"),
    "save to a store": (lambda e: e.save("s3://bucket/saved"), CheckpointError, "must be in a folder"),
    "load nothing": (lambda e: ms.Engine.load(None), SinkError, "a NoneType is not a path"),
    "load what no file can be": (lambda e: ms.Engine.load("a\0b"), SinkError, "a character 0"),
    "negative lateness": (lambda e: e.create_stream("Z", DDL, "ts", lateness=-1), InputError, "negative"),
    "no duration": (lambda e: e.create_stream("Z", DDL, "ts", idle_timeout="a while"), InputError, "'a while'"),
    "no SQL": (lambda e: e.add_query("p", "SELEKT A.k FROM A"), LanguageError, "not SQL"),
    "unknown column": (lambda e: e.add_query("p", "SELECT A.z FROM A"), LanguageError, "unknown column 'A.z'"),
    "unknown stream in FROM": (lambda e: e.add_query("p", "SELECT Z.k FROM Z"), LanguageError, "Z"),
    "type mismatch": (lambda e: e.add_query("p", "SELECT A.k FROM A WHERE A.k = A.s"), LanguageError, "be compared"),
    "no window": (lambda e: e.add_query("p", "SELECT A.k FROM A, B WHERE A.k = B.k"), LanguageError, "has no window"),
    "negative window": (lambda e: e.add_query("p", "SELECT A.k FROM A [RANGE -5 SECONDS]"), LanguageError, ""),
    "no rows": (lambda e: e.add_query("p", "SELECT A.k FROM A [ROWS 0]"), LanguageError, "cannot keep 0 rows"),
    "query twice": (lambda e: e.add_query("q", JOIN), QueryError, "there is already a query 'q'"),
    "plan misses a stream": (lambda e: e.add_query("p", JOIN, plan="A"), PlanError, "the plan lacks B"),
    "plan names a stranger": (lambda e: e.migrate("q", "((A B) C)"), PlanError, "'C'"),
    "plan names one twice": (lambda e: e.migrate("q", "((A B) A)"), PlanError, "A"),
    "no plan": (lambda e: e.migrate("q", "(A B"), PlanError, "expected"),
    "unknown strategy": (lambda e: e.migrate("q", "(B A)", strategy="warp"), StrategyError, "unknown strategy 'warp'"),
    "unknown option": (lambda e: e.migrate("q", "(B A)", budget=3), StrategyError, "no option 'budget'"),
    "unsafe migration": (lambda e: e.migrate("q", "(B A)", "pause_drain_resume"), StrategyError, "stateful"),
    "migrate nobody": (lambda e: e.migrate("p", "(A B)"), QueryError, "no query 'p'"),
    "drop nobody": (lambda e: e.drop_query("p"), QueryError, "no query 'p'"),
    "explain nobody": (lambda e: e.explain("p"), QueryError, "no query 'p'"),
    "explain in what": (lambda e: e.explain("q", format="xml"), QueryError, "unknown format 'xml'"),
    "progress of nobody": (lambda e: e.migration("p"), QueryError, "no query 'p'"),
    "seconds of a text": (lambda e: e.push({"A": table([3])}, took="x"), InputError, "not a number of seconds"),
    "an interval of nothing": (lambda e: e.push(interval=float("nan")), InputError, "not a number of seconds"),
    "a backlog of a number": (lambda e: e.push({"A": table([3])}, backlog=3), InputError, "the number of waiting rows"),
    "a backlog of texts": (lambda e: e.push({"A": table([3])}, backlog={"A": "x"}), InputError, "waiting rows"),
    "a port that is not a number": (lambda e: e.serve_metrics("x"), MidstreamError, "cannot listen"),
    "a port that is too great": (lambda e: e.serve_metrics(70_000), MidstreamError, "cannot listen"),
    "an operator that is not a text": (lambda e: ms.allow_operators(["a:B"]), InputError, "be a string, not list"),
    "a source that is not a text": (lambda e: ms.allow_sources(None), InputError, "be a string, not NoneType"),
    "no lanes": (lambda e: e.rescale(0), QueryError, "the number of lanes cannot be 0"),
    "half a lane": (lambda e: e.rescale(2.5), QueryError, "the number of lanes cannot be 2.5"),
}  # fmt: skip


WRONG_ENGINES: dict[str, tuple[dict[str, Any], str]] = {
    "fewer than no threads": ({"threads": -1}, "-1 threads"),
    "no number of threads": ({"threads": "2"}, "'2' threads"),
    "a number for a checkpoint": ({"checkpoint": 3}, "a int is not a path"),
    "bytes for a checkpoint": ({"checkpoint": b"ckpt"}, "a bytes is not a path"),
    "no checkpoint": ({"checkpoint": ""}, "the path is empty"),
    "a checkpoint that no file can be": ({"checkpoint": "ck\0pt"}, "a character 0"),
}


@pytest.mark.parametrize(("options", "words"), WRONG_ENGINES.values(), ids=WRONG_ENGINES)
def test_an_engine_of_wrong_values_is_not_made(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), pytest.raises(MidstreamError) as caught:
        ms.Engine(**options)
    assert words in str(caught.value) and caught.value.place and caught.value.remedy
    assert not list(tmp_path.iterdir())


def running() -> Any:
    made = engine("AB")
    made.add_query("q", JOIN)
    made.push(both("AB", table([1, 2], k=[1, 2], j=[1, 2])))
    return made


@pytest.mark.parametrize("case", WRONG)
def test_the_error_helps_and_nothing_has_changed(case: str) -> None:
    use, kind, message = WRONG[case]
    made, twin = running(), running()
    before, events, held = made.manifest, made.events, len(made._store)
    with pytest.raises(kind) as caught:
        use(made)
    assert type(caught.value) is kind
    assert message in caught.value.message
    assert caught.value.remedy, "no remedy"
    assert caught.value.place, "no place"
    assert f"{caught.value.message} (at {caught.value.place}). Remedy: " in str(caught.value)
    assert made.manifest == before
    assert made.events == events
    assert len(made._store) == held
    assert dict(made.late) == dict(made.dead_letters) == {}
    rows = both("AB", table([3], k=[1], j=[3]))
    assert made.push(rows)["q"].to_pylist() == twin.push(rows)["q"].to_pylist() != []
    assert made.manifest == twin.manifest


@pytest.mark.parametrize(
    ("arguments", "message"), [({"sharing": "some"}, "sharing"), ({"lanes": 0}, "lanes"), ({"lanes": 4097}, "lanes")]
)
def test_an_engine_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        ms.Engine(**arguments)
    assert caught.value.remedy


def test_a_step_that_fails_amid_its_work_leaves_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the commands that wait for it: the same push works once the cause is gone."""
    made, twin = running(), running()
    for one in (made, twin):
        one.add_query("p", "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND")
        one.migrate("q", "(B A)")
        one.rescale(2)
    rows = both("AB", table([3], k=[1], j=[3]))
    before = made.manifest

    def broken(*_: object) -> None:
        raise MemoryError("no more")

    with monkeypatch.context() as patch:
        patch.setattr("midstream.step.levels.conclude", broken)
        with pytest.raises(MemoryError):
            made.push(rows)
    assert made.manifest is before
    assert len(made.manifest.pending) == 3
    assert {n: t.to_pylist() for n, t in made.push(rows).items()} == {
        n: t.to_pylist() for n, t in twin.push(rows).items()
    }
    assert made.manifest == twin.manifest
    assert made.events == twin.events
    assert len(made._store) == len(twin._store), "chunks of the failed attempt are let go"


def test_errors_of_loading_and_saving(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a saved engine") as caught:
        ms.Engine.load(tmp_path / "nothing")
    assert caught.value.place == str(tmp_path / "nothing")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    with pytest.raises(CheckpointError, match="is not a saved engine"):
        running().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"
    (tmp_path / "file").write_text("")
    with pytest.raises(MidstreamError):
        running().save(tmp_path / "file" / "below")
