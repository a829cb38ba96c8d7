"""Each text of a query is parsed once, where it is declared, checked, changed, sent to a job or taken up again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp
from sqlglot.tokens import Token  # type: ignore[attr-defined]
from typer.testing import CliRunner

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import app
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.sql.dialect import Midstream

NARROW = "k BIGINT, v BIGINT, ts TIMESTAMP"
QUERIES = {
    "pairs": "SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS",
    "counts": "SELECT x.k, x.n FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 5 SECONDS] GROUP BY k EVERY 1 SECOND) AS x",
    "all": "SELECT * FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS",
    "left": "SELECT A.k, y.v FROM A LEFT JOIN (SELECT B.* FROM B, A AS C WHERE B.k = C.k WINDOW 9 SECONDS) AS y"
    " ON A.k = y.k WINDOW 9 SECONDS",
    "above": "SELECT pairs.k FROM pairs [RANGE 5 SECONDS], counts [RANGE 5 SECONDS] WHERE pairs.k = counts.k",
}
KEYS = "SELECT B.k FROM B"
WIDER = QUERIES["pairs"].replace("10", "20")
STREAM = """[streams.{}]
format = "parquet"
path = "{}"
schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
timestamp = "ts"
"""


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each text was parsed."""
    found, parse = Counter[str](), Midstream.Parser.parse

    def counted(self: object, tokens: list[Token], sql: str = "") -> list[exp.Expr | None]:
        found[sql] += 1
        return parse(self, tokens, sql)  # type: ignore[arg-type]

    monkeypatch.setattr(Midstream.Parser, "parse", counted)
    yield found


def opened(checkpoint: Path, queries: dict[str, str], columns: str = NARROW) -> ms.Engine:
    engine = ms.Engine(checkpoint=checkpoint)
    for stream in "AB":
        engine.create_stream(stream, columns, timestamp="ts")
    for name, sql in queries.items():
        engine.add_query(name, sql)
    return engine


def push(engine: ms.Engine, second: int) -> None:
    engine.push({stream: [{"k": 1, "v": 2, "w": 3, "ts": f"2020-01-01 00:00:{second:02d}"}] for stream in "AB"})


def test_declaring_running_and_changing(tmp_path: Path, parses: Counter[str]) -> None:
    with opened(tmp_path, QUERIES) as engine:
        push(engine, 1)
        engine.change_query("pairs", WIDER)
        push(engine, 2)
        engine.explain("pairs")
        engine.migrate("pairs", "(B A)")
        push(engine, 3)
    assert parses == dict.fromkeys((*QUERIES.values(), WIDER), 1)


def test_starting_again(tmp_path: Path, parses: Counter[str]) -> None:
    with opened(tmp_path, QUERIES) as engine:
        push(engine, 1)
    parses.clear()
    with opened(tmp_path, QUERIES) as engine:
        push(engine, 2)
    assert not parses, "the checkpoint has them bound"
    with opened(tmp_path, {**QUERIES, "pairs": WIDER}) as engine:
        push(engine, 3)
    assert parses == {WIDER: 1}


def test_starting_again_with_wider_streams(tmp_path: Path, parses: Counter[str]) -> None:
    with opened(tmp_path, QUERIES) as engine:
        push(engine, 1)
    parses.clear()
    with opened(tmp_path, QUERIES, f"{NARROW}, w BIGINT") as engine:
        push(engine, 2)
    assert parses == {sql: 1 for sql in QUERIES.values() if "*" in sql}, "only what * stands for is another"


def test_commands_of_the_log(tmp_path: Path, parses: Counter[str]) -> None:
    with opened(tmp_path, {"pairs": QUERIES["pairs"]}) as engine:
        push(engine, 1)
        parses.clear()
        sender = Checkpoint.open(tmp_path)
        for command in (
            AddQuery("all", QUERIES["all"]),
            ChangeQuery("pairs", WIDER),
            AddQuery("b", KEYS),
        ):
            sender.send(command)
        assert parses == {QUERIES["all"]: 1, WIDER: 1, KEYS: 1}, "by the sender"
        push(engine, 2)
        push(engine, 3)
    assert set(parses.values()) == {2}, "by the sender and by the job"


def test_a_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parses: Counter[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'checkpoint = "ckpt"\n' + "".join(STREAM.format(name, name) for name in "AB")
    for name in "AB":
        (tmp_path / name).mkdir()
        rows = {"k": [1, 2], "v": [3, 4], "ts": pa.array([1, 2], pa.timestamp("us"))}
        pq.write_table(pa.table(rows), tmp_path / name / "0.parquet")
    for name, sql in QUERIES.items():
        text += f'[queries.{name}]\nsql = "{sql}"\nsink = {{ format = "parquet", path = "out/{name}" }}\n'
    for wanted in (text, text.replace(QUERIES["pairs"], f'{WIDER}"\nplan = "(B A)')):
        (tmp_path / "job.toml").write_text(wanted)
        parses.clear()
        done = CliRunner().invoke(app, ["run", "job.toml", "--engine", "embedded", "--once"])
        assert done.exit_code == 0, done.output
        assert set(parses.values()) == {1}, parses
