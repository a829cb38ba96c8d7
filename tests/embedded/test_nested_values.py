"""Parts of nested values in joins: keys, filters and results, amid a migration, against DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import midstream as ms

SCHEMA = "ts TIMESTAMP, info STRUCT<ip: VARCHAR, n: INT>, tags VARCHAR[], attrs MAP(VARCHAR, BIGINT)"
CONDITION = "A.info.ip = B.tags[1] AND B.attrs['k'] = C.info.n AND C.tags[-1] <> 'z'"
SELECTED = "A.info.ip AS ip, B.attrs['k'] AS k, C.tags[-1] AS last"


def rows(step: int, shift: int) -> pa.Table:
    letters, numbers = "xyz", range(step * 12, step * 12 + 12)
    empty = [n % 5 == shift for n in numbers]
    columns = {
        "ts": pa.array([n * 1_000_000 for n in numbers], pa.timestamp("us")),
        "info": pa.array(
            [None if e else {"ip": letters[(n + shift) % 3], "n": n % 4} for n, e in zip(numbers, empty, strict=True)],
            pa.struct({"ip": pa.string(), "n": pa.int32()}),
        ),
        "tags": pa.array([[letters[n % 3]] * (n % 3) for n in numbers], pa.list_(pa.string())),
        "attrs": pa.array([[("k", n % 4)] if n % 3 else [] for n in numbers], pa.map_(pa.string(), pa.int64())),
    }
    return pa.table(columns)


def test_a_join_over_parts_gives_what_duckdb_gives() -> None:
    engine = ms.Engine()
    for stream in "ABC":
        engine.create_stream(stream, SCHEMA, timestamp="ts")
    engine.add_query("q", f"SELECT {SELECTED} FROM A, B, C WHERE {CONDITION} WINDOW 1 HOUR")
    pushed = [{stream: rows(step, shift) for shift, stream in enumerate("ABC")} for step in range(4)]
    found: list[tuple[object, ...]] = []
    for step, tables in enumerate(pushed):
        if step == 2:
            engine.migrate("q", "(A (B C))", strategy="moving_state")
        found += [tuple(row.values()) for row in engine.push(tables)["q"].to_pylist()]
    database = duckdb.connect()
    for stream in "ABC":
        database.register(stream, pa.concat_tables([tables[stream] for tables in pushed]))
    expected = database.execute(f"SELECT {SELECTED} FROM A, B, C WHERE {CONDITION}").fetchall()
    assert expected
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("text", ["SELECT A.info.ip FROM A", "SELECT info.ip FROM A"])
def test_a_field_without_an_alias_gives_its_name(text: str) -> None:
    engine = ms.Engine()
    engine.create_stream("A", pa.schema([("info", pa.struct({"ip": pa.string()})), ("ts", pa.timestamp("us"))]), "ts")
    engine.add_query("q", text)
    row = pa.table({"info": [{"ip": "x"}], "ts": pa.array([0], pa.timestamp("us"))})
    assert engine.push({"A": row})["q"].to_pylist() == [{"ip": "x"}]
