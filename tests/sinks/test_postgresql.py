"""The PostgreSQL sink against a real server."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import WriteError
from midstream.sinks import as_sink
from midstream.sinks import postgresql as postgresql_sink
from midstream.sinks.postgresql import PostgresqlSink, copy_text
from midstream.testing import SinkCase, check_sink
from tests.postgresql import PASSWORD, Server
from tests.sinks.steps import commit


def named(folder: Path) -> str:
    """A table for each folder."""
    return "t" + sha256(str(folder).encode()).hexdigest()[:12]


def rows(server: Server, table: str, columns: str = "k, s") -> list[dict[str, Any]]:
    if not server.execute("SELECT to_regclass(%s)", table)[0][0]:
        return []
    names = columns.split(", ")
    return [dict(zip(names, row, strict=True)) for row in server.execute(f"SELECT {columns} FROM {table}")]


@pytest.fixture
def sink(postgresql: Server, tmp_path: Path) -> PostgresqlSink:
    return PostgresqlSink(named(tmp_path), postgresql.dsn)


def test_it_keeps_the_contract(postgresql: Server) -> None:
    check_sink(
        SinkCase(
            lambda folder: PostgresqlSink(named(folder), postgresql.dsn),
            lambda folder: rows(postgresql, named(folder)),
        )
    )


NESTED = pa.struct([("list", pa.list_(pa.float64())), ("at", pa.timestamp("us"))])
WHEN = dt.datetime(2013, 11, 3, 1, 30, 0, 123456)
COLUMNS: dict[str, tuple[pa.DataType, list[Any], str, list[Any]]] = {
    "flag": (pa.bool_(), [True, False], "boolean", [True, False]),
    "small": (pa.int16(), [-32768, 32767], "smallint", [-32768, 32767]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1], "bigint", [-(2**63), 2**63 - 1]),
    "huge": (pa.uint64(), [0, 2**64 - 1], "numeric", [Decimal(0), Decimal(2**64 - 1)]),
    "real": (pa.float64(), [0.1, -math.inf], "double precision", [0.1, -math.inf]),
    "text": (pa.string(), ["", 'a "b", \\N\n\\.\n\t☃'], "text", ["", 'a "b", \\N\n\\.\n\t☃']),
    "lookalike": (pa.string(), ["NULL", "\\N"], "text", ["NULL", "\\N"]),
    "raw": (pa.binary(), [b"", b"\x00\xff\\x"], "bytea", [b"", b"\x00\xff\\x"]),
    "price": (pa.decimal128(20, 4), [Decimal("-0.0001"), Decimal("1234567890123456.7890")], "numeric", None),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], "date", None),
    "clock": (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999)], "time without time zone", None),
    "local": (pa.timestamp("us"), [WHEN, dt.datetime(1, 1, 1)], "timestamp without time zone", None),
    "zoned": (
        pa.timestamp("us", "America/New_York"),
        [WHEN.replace(tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)],
        "timestamp with time zone",
        None,
    ),
    "spell": (pa.duration("us"), [dt.timedelta(days=-3, microseconds=1), dt.timedelta(0)], "interval", None),
    "nested": (
        NESTED,
        [{"list": [1.5, None, math.nan], "at": WHEN}, {"list": [], "at": None}],
        "jsonb",
        [{"list": [1.5, None, "NaN"], "at": WHEN.isoformat()}, {"list": [], "at": None}],
    ),
}  # type: ignore[assignment]


def test_every_type_comes_back_as_it_was(postgresql: Server, sink: PostgresqlSink, tmp_path: Path) -> None:
    """With two rows of extreme values, and one of NULLs."""
    table = pa.table({name: pa.array([*given, None], kind) for name, (kind, given, _, _) in COLUMNS.items()})
    commit(sink, tmp_path, 0, table)
    kinds = dict(
        postgresql.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", sink.table
        )
    )
    assert kinds == {"_step_id": "bigint", **{name: kind for name, (_, _, kind, _) in COLUMNS.items()}}
    for name, (_, given, _, expected) in COLUMNS.items():
        found = [row[0] for row in postgresql.execute(f'SELECT "{name}" FROM {sink.table}')]
        assert found == [*(expected or given), None], name


def test_a_table_of_the_user_s_own_takes_the_results_by_name(
    postgresql: Server, sink: PostgresqlSink, tmp_path: Path
) -> None:
    postgresql.execute(
        f"CREATE TABLE {sink.table} (id serial PRIMARY KEY, s varchar(9), k int, at timestamptz, _step_id bigint)"
    )
    table = pa.table({"k": [1], "at": pa.array([WHEN], pa.timestamp("us")), "s": ["x"]})
    commit(sink, tmp_path, 0, table)
    assert rows(postgresql, sink.table, "id, s, k, at") == [
        {"id": 1, "s": "x", "k": 1, "at": WHEN.replace(tzinfo=dt.UTC)}
    ]


def test_queries_that_share_a_table_are_kept_apart(postgresql: Server, sink: PostgresqlSink, tmp_path: Path) -> None:
    for query in ("one", "other"):
        for step in (0, 1):
            commit(sink, tmp_path, step, pa.table({"k": [step], "s": [query]}), query)
    sink.check_forget("one", 0)
    assert len(rows(postgresql, sink.table)) == 4
    sink.forget_after("one", 0)
    found = sorted((row["s"], row["k"]) for row in rows(postgresql, sink.table))
    assert found == [("one", 0), ("other", 0), ("other", 1)]


def test_rows_that_do_not_say_their_step_are_never_taken_back(postgresql: Server, tmp_path: Path) -> None:
    sink = PostgresqlSink(named(tmp_path), postgresql.dsn, step_column=False)
    for step in (0, 1):
        commit(sink, tmp_path, step, pa.table({"k": [step], "s": ["x"]}))
    assert postgresql.execute(f"SELECT * FROM {sink.table} ORDER BY k") == [(0, "x"), (1, "x")]
    sink.forget_after("q", 1)
    for go_back in (sink.check_forget, sink.forget_after):
        with pytest.raises(ms.SinkError, match="after 0 cannot be taken back: the rows do not say"):
            go_back("q", 0)
    assert len(rows(postgresql, sink.table)) == 2


def test_a_step_that_lies_behind_the_table_is_refused(postgresql: Server, sink: PostgresqlSink, tmp_path: Path) -> None:
    """The checkpoint was restored from a backup, the table was not."""
    commit(sink, tmp_path, 5, pa.table({"k": [5], "s": ["x"]}))
    with pytest.raises(
        ms.SinkError,
        match="the sink's step 5 of query 'q' is not on the time line of the job's step 3",
    ):
        commit(sink, tmp_path, 3, pa.table({"k": [3], "s": ["x"]}))
    assert rows(postgresql, sink.table) == [{"k": 5, "s": "x"}]


def test_what_does_not_fit_is_refused_whole(postgresql: Server, sink: PostgresqlSink, tmp_path: Path) -> None:
    commit(sink, tmp_path, 0, pa.table({"k": [1], "s": ["x"]}))
    for table, said in (
        (pa.table({"k": [1], "t": ["x"]}), 'column "t".*Remedy: alter the table'),
        (pa.table({"k": ["one"], "s": ["x"]}), "invalid input syntax.*Remedy: see that the table's columns"),
        (pa.table({"k": [1], "s": ["a\x00b"]}), "0x00"),
    ):
        with pytest.raises(ms.SinkError, match=said):
            commit(sink, tmp_path, 1, table)
    assert rows(postgresql, sink.table) == [{"k": 1, "s": "x"}]
    commit(sink, tmp_path, 1, pa.table({"k": [2], "s": ["y"]}))
    assert [row["k"] for row in rows(postgresql, sink.table)] == [1, 2]


def test_a_table_without_the_column_for_steps_is_refused_at_the_start(postgresql: Server, sink: PostgresqlSink) -> None:
    postgresql.execute(f"CREATE TABLE {sink.table} (k int)")
    with pytest.raises(ms.SinkError, match=f"no column _step_id .*ALTER TABLE {sink.table} ADD COLUMN _step_id bigint"):
        sink.open()
    PostgresqlSink(sink.table, sink.dsn, step_column=False).open()


@pytest.mark.parametrize(
    "options",
    [
        {"dsn": "dbname=x password=hidden"},
        {"dsn": "postgresql://me:hidden@db/x"},
        {"password": "hidden"},
        {"dsn": "=hidden"},
        {"dsn": "sslpassword=hidden"},
    ],
)
def test_a_password_never_gets_into_a_manifest_or_a_message(options: dict[str, str]) -> None:
    with pytest.raises(ms.SinkError) as raised:
        as_sink({"type": "postgresql", "table": "t", **options}, "default")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "host=db sslmode=require sslkey=/checkpoint/evil.so:1",  # OpenSSL would load the library.
        "postgresql://db/x?sslkey=%2Fcheckpoint%2Fevil.so:1",
        "host=db sslkeylogfile=/home/me/.bashrc",
        "host=db gssdelegation=1",
        "host=db hostaddr=10.6.6.6",  # The password that `~/.pgpass` has for `db` would go there.
        "host=evil service=warehouse",
        "host=evil passfile=/home/me/.pgpass",
    ],
)
def test_a_hostile_dsn_runs_nothing_and_has_no_password_sent_elsewhere(dsn: str) -> None:
    with pytest.raises(ms.SinkError, match=r"dsn must not.*Remedy: set the value"):
        as_sink({"type": "postgresql", "table": "t", "dsn": dsn}, "default")


def test_a_dsn_may_say_how_to_connect() -> None:
    dsn = "host=db port=5433 dbname=x user=me sslmode=verify-full sslcert=me.pem sslkey=me.key options=-csearch_path=s"
    assert PostgresqlSink("t", dsn).dsn == dsn


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, object]] = []

    def connect(dsn: str, **options: object) -> None:
        made.append(options)
        raise psycopg.OperationalError("no answer")

    monkeypatch.setattr(psycopg, "connect", connect)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    for dsn in ("service=warehouse", "host=db connect_timeout=90 keepalives_idle=5"):
        with pytest.raises(ms.SinkError, match="no answer"):
            PostgresqlSink("t", dsn).open()
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    with pytest.raises(ms.SinkError, match="no answer"):
        PostgresqlSink("t", "").open()
    assert [options.get("connect_timeout") for options in made] == [10, None, None]
    assert [options.get("keepalives_idle") for options in made] == [30, None, 30]


def test_a_server_that_is_away_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(ms.SinkError, match=r"refused.*table t.*Remedy: see that the server runs"):
        PostgresqlSink("t", "host=127.0.0.1 port=1 user=x dbname=y").open()


ROW = pa.table({"k": [1]})


@pytest.mark.parametrize("amid", ["the rows", "the transaction"])
def test_who_goes_on_does_not_wait_for_one_that_was_suspended(
    postgresql: Server, sink: PostgresqlSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amid: str
) -> None:
    """A suspended program's session stays, with all its locks, for its machine goes on to answer the server."""
    monkeypatch.setattr(postgresql_sink, "PATIENCE", 1)
    reached, woken = threading.Event(), threading.Event()

    def suspended(table: pa.Table) -> Iterator[bytes]:
        yield from copy_text(table)
        hang()

    def hang(*_: Any) -> None:
        reached.set()
        assert woken.wait(60)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patch:
        if amid == "the rows":
            patch.setattr(postgresql_sink, "copy_text", suspended)
        else:
            patch.setattr(PostgresqlSink, "_newest", hang)
        first = pool.submit(commit, sink, tmp_path / "first", 0, ROW)
        try:
            assert reached.wait(60)
            patch.undo()
            commit(sink, tmp_path / "second", 0, ROW)
        finally:
            woken.set()
        with pytest.raises(WriteError, match="PostgreSQL"):
            first.result()
    assert rows(postgresql, sink.table, "k") == [{"k": 1}]


def test_a_lock_of_another_user_s_is_said_to_be_in_the_way(
    postgresql: Server, sink: PostgresqlSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_sink, "PATIENCE", 1)
    postgresql.execute(f"CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'")
    with psycopg.connect(postgresql.dsn, user="stranger") as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (postgresql_sink.STEPS,))
        with pytest.raises(WriteError, match=r"lock timeout.*pg_stat_activity"):
            commit(sink, tmp_path, 0, ROW)
        other.execute("SELECT 1")
    commit(sink, tmp_path, 0, ROW)
    assert rows(postgresql, sink.table, "k") == [{"k": 1}]


@pytest.mark.parametrize("table", ["", "a.b.c", ".a", "a."])
def test_a_name_of_no_table_is_refused(table: str) -> None:
    with pytest.raises(ms.SinkError, match="is not the name of a table"):
        PostgresqlSink(table)


def test_names_are_names_whatever_is_in_them(postgresql: Server, tmp_path: Path) -> None:
    postgresql.execute('CREATE SCHEMA IF NOT EXISTS "Odd ""one"""')
    sink = PostgresqlSink('Odd "one".t;drop', postgresql.dsn)
    for _ in range(2):
        sink.open()
        commit(sink, tmp_path, 0, pa.table({'a"b': [1], "SELECT %s": [2]}), query="it's")
    assert postgresql.execute('SELECT "a""b", "SELECT %s" FROM "Odd ""one"""."t;drop"') == [(1, 2)]
