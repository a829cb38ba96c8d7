"""A query whose first step fails is never lost: it waits until it is mended or dropped, and `status` says why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import app
from midstream.commands.add_query import AddQuery

Function = Callable[[pa.Array, pa.Array], pa.Array]
SQL = "SELECT A.k FROM A, B WHERE mine(A.k, B.k) WINDOW 10 SECONDS"
PLAIN = "SELECT A.k FROM A"
JOB = """
checkpoint = "ckpt"
[streams.A]
format = "parquet"
path = "A"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
[streams.B]
format = "parquet"
path = "B"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
"""
QUERY = f'[queries.p]\nsql = "{SQL}"\nsink = {{ format = "parquet", path = "out" }}\n'


def good(a: pa.Array, b: pa.Array) -> pa.Array:
    return pa.array([True] * len(a))


def bad(a: pa.Array, b: pa.Array) -> pa.Array:
    raise ZeroDivisionError("not yet")


def too_deep(a: pa.Array, b: pa.Array) -> pa.Array:
    return too_deep(a, b)


def rows(second: int) -> pa.Table:
    return pa.table({"k": [1], "ts": pa.array([second * 1_000_000], pa.timestamp("us"))})


def both(second: int) -> dict[str, pa.Table]:
    return {"A": rows(second), "B": rows(second)}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    ms.predicate("mine", good, "BIGINT", "BIGINT")
    yield
    ms.predicate("mine", good, "BIGINT", "BIGINT")


def mine(function: Function) -> None:
    ms.predicate("mine", function, "BIGINT", "BIGINT")


def opened(root: Path, *queries: str, sql: str = SQL) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "ckpt")
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    for name in queries or ("p",):
        engine.add_query(name, sql)
    return engine


def refused(root: Path) -> dict[str, str]:
    """What `midstream status` says; before the first step it is a message."""
    found = CliRunner().invoke(app, ["status", str(root / "ckpt"), "--json"])
    if found.exit_code:
        text = str(found.exception)
        assert "the job has not finished a step yet" in text, text
        return {"p": text} if "query p was refused" in text else {}
    return {name: one["reason"] for name, one in json.loads(found.output)["refused"].items()}


@pytest.mark.parametrize("function", [bad, too_deep])
def test_it_waits_until_it_is_mended_and_pushed_again(tmp_path: Path, function: Function) -> None:
    mine(function)
    with opened(tmp_path) as engine:
        with pytest.raises(ms.MidstreamError):
            engine.push(both(1))
        with pytest.raises(ms.MidstreamError):
            engine.push(both(1))
        assert list(refused(tmp_path)) == ["p"]
        assert engine.manifest.step == -1
        mine(good)
        assert engine.push(both(1))["p"].num_rows == 1
        assert refused(tmp_path) == {}
        assert [event.kind for event in engine.events].count("query_added") == 1


@pytest.mark.parametrize("changed", [False, True])
def test_the_next_start_takes_it_up_mended(tmp_path: Path, changed: bool) -> None:
    mine(bad)
    with opened(tmp_path) as engine, pytest.raises(ms.MidstreamError):
        engine.push(both(1))
    assert "ZeroDivisionError" in refused(tmp_path)["p"]
    if changed:
        sql = SQL.replace("10 SECONDS", "20 SECONDS")
    else:
        sql = SQL
        mine(good)
    with opened(tmp_path, sql=sql) as engine:
        if changed:
            with pytest.raises(ms.MidstreamError):
                engine.push(both(1))
            mine(good)
        assert engine.push(both(1))["p"].num_rows == 1
        assert engine.manifest.queries["p"].sql == sql
    assert refused(tmp_path) == {}


def test_other_queries_and_the_rows_wait_with_it(tmp_path: Path) -> None:
    with opened(tmp_path, "first") as engine:
        assert engine.push(both(1))["first"].num_rows == 1
        mine(bad)
        engine.add_query("q", PLAIN)
        engine.add_query("p", SQL.replace("10", "5"))
        engine.drop_query("first")
        with pytest.raises(ms.MidstreamError):
            engine.push(both(2))
        mine(good)
        found = engine.push(both(2))
        assert {name: table.num_rows for name, table in found.items()} == {"q": 1, "p": 3}


def test_it_can_be_dropped(tmp_path: Path) -> None:
    mine(bad)
    with opened(tmp_path) as engine:
        with pytest.raises(ms.MidstreamError):
            engine.push(both(1))
        engine.drop_query("p")
        assert engine.push(both(1)) == {}
        assert engine.manifest.queries == {} and refused(tmp_path) == {}


def test_a_change_that_fails_waits_too(tmp_path: Path) -> None:
    with opened(tmp_path, sql="SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS") as engine:
        engine.push(both(1))
        mine(bad)
        engine.add_query("more", SQL)
        with pytest.raises(ms.MidstreamError):
            engine.push(both(2))
        assert list(refused(tmp_path)) == ["more"]
        engine.change_query("more", SQL.replace("10", "20"))
        mine(good)
        engine.push(both(2))
        assert "20 SECONDS" in engine.manifest.queries["more"].sql


def test_one_from_the_log_is_refused_and_shown_until_it_is_dropped(tmp_path: Path) -> None:
    """Somebody else sent it: the program goes on without it."""
    with opened(tmp_path, sql=PLAIN) as engine:
        engine.push(both(1))
        mine(bad)
        Checkpoint.open(tmp_path / "ckpt").commands.append(AddQuery("sent", SQL))
        with pytest.raises(ms.MidstreamError):
            engine.push(both(2))
        assert engine.push(both(2)).keys() == {"p"}
        assert "ZeroDivisionError" in refused(tmp_path)["sent"]
        assert engine.push(both(3)).keys() == {"p"}
        shown = CliRunner().invoke(app, ["status", str(tmp_path / "ckpt")]).output
        assert "queries refused" in shown and "sent" in shown
        assert CliRunner().invoke(app, ["drop", str(tmp_path / "ckpt"), "sent"]).exit_code == 0
        engine.push(both(4))
        assert refused(tmp_path) == {}


def test_one_from_the_log_can_be_declared_rightly(tmp_path: Path) -> None:
    with opened(tmp_path, sql=PLAIN) as engine:
        engine.push(both(1))
        mine(bad)
        Checkpoint.open(tmp_path / "ckpt").commands.append(AddQuery("sent", SQL))
        with pytest.raises(ms.MidstreamError):
            engine.push(both(2))
        engine.push(both(2))
        mine(good)
        engine.add_query("sent", SQL)
        assert engine.push(both(3))["sent"].num_rows == 1
        assert refused(tmp_path) == {}


def test_a_job_file_is_taken_up_again_once_it_is_mended(tmp_path: Path) -> None:
    for name in "AB":
        (tmp_path / name).mkdir()
        pq.write_table(rows(1), tmp_path / name / "0.parquet")
    (tmp_path / "job.toml").write_text(JOB + QUERY)

    def run() -> int:
        return CliRunner().invoke(app, ["run", "job.toml", "--engine", "embedded", "--once"]).exit_code

    mine(bad)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        assert run() != 0 and list(refused(tmp_path)) == ["p"]
        assert run() != 0 and list(refused(tmp_path)) == ["p"]
        (tmp_path / "job.toml").write_text(JOB)
        assert run() == 0 and refused(tmp_path) == {}
        (tmp_path / "job.toml").write_text(JOB + QUERY)
        mine(good)
        for name in "AB":
            pq.write_table(rows(2), tmp_path / name / "1.parquet")
        assert run() == 0 and refused(tmp_path) == {}
    assert sum(pq.read_table(file).num_rows for file in (tmp_path / "out").glob("step=*/*")) == 1
