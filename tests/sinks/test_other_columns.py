"""A table with other columns than a query's results: said before a step is committed, and not step after step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.sinks import as_sink
from tests.embedded.test_checkpoint import SQL, opened, step
from tests.postgresql import Server
from tests.sinks.lakes import catalog, describe_catalog
from tests.unit.building import table

OTHERS = pa.schema([("k", pa.string()), ("t", pa.int64())])
"""The results have `k`, a BIGINT, and `w`, a DOUBLE."""


@dataclass(frozen=True)
class Tables:
    """A kind of table: the sink of one that others have made, what they had it be, and the keys in it."""

    sink: dict[str, Any]
    make: Callable[[], Any]
    mend: Callable[[], Any]
    keys: Callable[[], list[int]]
    place: str
    says: tuple[str, ...]


def delta(folder: Path) -> Tables:
    path = str(folder / "table")

    def make(columns: pa.Schema = OTHERS) -> None:
        write_deltalake(path, columns.empty_table(), mode="overwrite", schema_mode="overwrite")

    return Tables(
        {"type": "delta", "path": path},
        make,
        lambda: make(pa.schema([("w", pa.float64()), ("k", pa.int64())])),
        lambda: sorted(DeltaTable(path).to_pyarrow_table()["k"].to_pylist()),
        f"Delta table {path}",
        ("k is string and should be long", "t is not of the results", "w is missing"),
    )


def iceberg(folder: Path) -> Tables:
    name = "ns.other"

    def make(columns: pa.Schema = OTHERS) -> None:
        catalog().create_namespace_if_not_exists("ns")
        if catalog().table_exists(name):
            catalog().drop_table(name)
        catalog().create_table(name, columns)

    return Tables(
        {"type": "iceberg", "table": name, "catalog": "tests"},
        make,
        lambda: make(pa.schema([("w", pa.float64()), ("k", pa.int64())])),
        lambda: sorted(catalog().load_table(name).scan().to_arrow()["k"].to_pylist()),
        f"Iceberg table {name}",
        ("t is not of the results", "w is missing"),
    )


def postgresql_table(server: Server, folder: Path) -> Tables:
    name = f"other_{abs(hash(str(folder)))}"
    return Tables(
        {"type": "postgresql", "table": name, "dsn": server.dsn},
        lambda: server.execute(f"CREATE TABLE {name} (k boolean, t bigint NOT NULL, _step_id bigint)"),
        lambda: server.execute(
            f"ALTER TABLE {name} ALTER t DROP NOT NULL, ADD w numeric, ALTER k TYPE integer USING 0"
        ),
        lambda: sorted(k for (k,) in server.execute(f"SELECT k FROM {name}")),
        f"table {name}",
        ("k is boolean and should be bigint", "t must not be NULL and is not of the results", "w is missing"),
    )


@pytest.fixture(params=["delta", "iceberg", "postgresql"])
def tables(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    describe_catalog(tmp_path, monkeypatch)
    if request.param == "postgresql":
        return postgresql_table(request.getfixturevalue("postgresql"), tmp_path)
    return {"delta": delta, "iceberg": iceberg}[request.param](tmp_path)


def test_a_command_is_refused_and_the_job_runs_on(tables: Tables, tmp_path: Path) -> None:
    tables.make()
    with opened(tmp_path) as engine:
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.send(AddQuery("lake", SQL, sink=tables.sink))
        for number in (1, 2):
            engine.push(step(number))
        (refused,) = [event for event in checkpoint.events() if event["event"] == "command_refused"]
        said = refused["reason"]
        assert all(words in said for words in (tables.place, *tables.says, "Remedy: alter the table")), said
        assert list(engine.manifest.queries) == ["pairs"]
        tables.mend()
        checkpoint.send(AddQuery("lake", SQL, sink=tables.sink, history=False))
        engine.push(step(3))
    assert tables.keys() == [1, 2]


def test_a_program_is_told_at_once_and_nothing_has_changed(tables: Tables, tmp_path: Path) -> None:
    tables.make()
    with opened(tmp_path) as engine:
        engine.push(step(0))
        before = engine.manifest
        with pytest.raises(ms.SinkError, match=tables.says[-1]) as raised:
            engine.add_query("lake", SQL, sink=tables.sink)
        assert tables.place in str(raised.value)
        assert engine.manifest == before
        engine.push(step(1))
        tables.mend()
        engine.add_query("lake", SQL, sink=tables.sink, history=False)
        engine.push(step(2))
    assert tables.keys() == [1, 2]


def test_a_table_that_is_altered_while_the_job_stands_still(tables: Tables, tmp_path: Path) -> None:
    """No step is committed whose results it would not take; and the job goes on once it is mended."""
    with opened(tmp_path, sink=tables.sink):
        pass
    tables.make()
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        with pytest.raises(ms.SinkError, match="the table and the results have different columns"):
            engine.add_query("pairs", SQL, sink=tables.sink)
        for _ in range(2):
            with pytest.raises(ms.SinkError, match="the table and the results have different columns"):
                engine.push(step(0))
            assert engine.manifest.step == -1
        tables.mend()
        engine.push(step(0))
    assert tables.keys() == [1, 2]


FINE = {
    "integer": pa.int64(),
    "numeric(30, 2)": pa.decimal128(10, 2),
    "text": pa.int64(),
    "timestamptz": pa.timestamp("us"),
    "real": pa.float64(),
    "json": pa.list_(pa.int64()),
    "uuid": pa.string(),
    "varchar(9)": pa.string(),
    "bytea": pa.binary(),
    "interval": pa.duration("us"),
}
OTHERWISE = {
    "bigint": pa.float64(),
    "smallint": pa.decimal128(10, 2),
    "boolean": pa.int64(),
    "date": pa.string(),
    "timestamp": pa.duration("us"),
    "interval": pa.time64("us"),
    "double precision": pa.bool_(),
    "numeric": pa.binary(),
}


@pytest.mark.parametrize(("kinds", "fits"), [(FINE, True), (OTHERWISE, False)], ids=["fine", "otherwise"])
def test_columns_of_postgresql_by_kind(postgresql: Server, tmp_path: Path, kinds: Any, fits: bool) -> None:
    """As many as differ are named, all at once; columns with defaults are others' own."""
    name = f"kinds_{abs(hash(str(tmp_path)))}"
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds))
    postgresql.execute(
        f"CREATE TABLE {name} ({columns}, id bigint GENERATED ALWAYS AS IDENTITY,"
        " at timestamptz NOT NULL DEFAULT now(), note text, _step_id bigint)"
    )
    sink = as_sink({"type": "postgresql", "table": name, "dsn": postgresql.dsn}, "")
    results = pa.schema([(f"c{n}", kind) for n, kind in enumerate(kinds.values())])
    if fits:
        sink.check_columns(results)
        return
    with pytest.raises(ms.SinkError) as raised:
        sink.check_columns(results)
    assert all(f"c{n} is " in str(raised.value) for n in range(len(kinds)))


def test_columns_of_iceberg_by_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is promoted without loss fits, as an append has it; what is within nested values it is left to."""
    describe_catalog(tmp_path, monkeypatch)
    catalog().create_namespace_if_not_exists("ns")
    catalog().create_table("ns.t", pa.schema([("n", pa.int64()), ("x", pa.float64()), ("l", pa.list_(pa.int64()))]))
    sink = as_sink({"type": "iceberg", "table": "ns.t", "catalog": "tests"}, "")
    sink.check_columns(pa.schema([("l", pa.list_(pa.int64())), ("x", pa.float32()), ("n", pa.int32())]))
    with pytest.raises(ms.SinkError, match="n is long and should be double, l is list<long> and should be string"):
        sink.check_columns(pa.schema([("n", pa.float64()), ("x", pa.float64()), ("l", pa.string())]))


def test_two_queries_of_a_program_cannot_have_one_folder(tmp_path: Path) -> None:
    with opened(tmp_path, sink=ms.sinks.files(tmp_path / "out")) as engine:
        before = engine.manifest
        with pytest.raises(ms.SinkError, match="already gets the results of query pairs"):
            engine.add_query("more", SQL, sink=ms.sinks.files(tmp_path / "out", format="csv"))
        assert engine.manifest == before
        engine.push(step(0))


DIFFERENCE = "SELECT A.k FROM A EXCEPT ON (k) B WINDOW 20 SECONDS"


def test_the_table_of_a_difference_says_what_rows_do(tmp_path: Path) -> None:
    """It is opened again, with the column that says whether a row comes or goes."""
    sink = {"type": "delta", "path": str(tmp_path / "table")}
    for number in range(3):
        with opened(tmp_path, DIFFERENCE, sink) as engine:
            engine.push({"A": step(4 * number)["A"], "B": table([40 * number + 1], k=[7], v=[0])})
    assert DeltaTable(tmp_path / "table").to_pyarrow_table().column_names == ["k", "_op"]
