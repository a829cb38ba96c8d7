"""What the unit tests are made of: streams, tables, parsed queries, engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

import midstream as ms
from midstream.logical.query import Query
from midstream.model.schema import StreamSchema
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Plan
from midstream.sql.ddl import parse_ddl
from midstream.sql.parse import parse_query

SECOND = 1_000_000
DDL = "k BIGINT, j BIGINT, s VARCHAR, v DOUBLE, ts TIMESTAMP"
COLUMNS = parse_ddl(DDL)


def schemas(names: Iterable[str] = "ABCDE", ddl: str = DDL) -> dict[str, StreamSchema]:
    """Streams of these names, all of one shape."""
    return {name: StreamSchema(name, parse_ddl(ddl), "ts") for name in names}


def query(sql: str, names: Iterable[str] = "ABCDE") -> Query:
    """A query's text, parsed over `schemas`."""
    return parse_query(sql, schemas(names))


def unbound(sql: str) -> Query:
    """A query whose text alone counts: it reads nothing."""
    return Query(sql, (), (), (), ())


def plan(notation: str) -> Plan:
    """A plan over any aliases, by way of a query that has them all."""
    aliases = sorted({letter for letter in notation if letter.isupper()})
    if len(aliases) == 1:
        return parse_plan(notation, query(f"SELECT {aliases[0]}.k FROM {aliases[0]}"))
    return parse_plan(notation, query(f"SELECT {aliases[0]}.k FROM {', '.join(aliases)} WINDOW 1 SECOND", aliases))


def table(ts: Sequence[float | None], **columns: Sequence[Any]) -> pa.Table:
    """Rows of the shape of `DDL`, times in seconds; columns left out are NULL."""
    times = [None if t is None else round(t * SECOND) for t in ts]
    given: dict[str, Sequence[Any]] = {**columns, "ts": times}
    arrays = []
    for field in COLUMNS:
        values = given.get(field.name, [None] * len(times))
        words = pa.array(values, pa.int64()).cast(field.type) if field.name == "ts" else pa.array(values, field.type)
        arrays.append(words)
    return pa.table(arrays, schema=COLUMNS)


def engine(names: Iterable[str] = "ABC", *, lateness: int = 0, idle_timeout: int | None = None, **options: Any) -> Any:
    """An engine with streams of the shape of `DDL`."""
    made = ms.Engine(**options)
    for name in names:
        made.create_stream(name, DDL, timestamp="ts", lateness=lateness, idle_timeout=idle_timeout)
    return made


def both(names: Iterable[str], rows: pa.Table) -> dict[str, pa.Table]:
    """The same rows for several streams."""
    return dict.fromkeys(names, rows)
