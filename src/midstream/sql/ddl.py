"""Schemas in words: `k BIGINT, ts TIMESTAMP, v DOUBLE`."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from midstream.expr.types import from_sql
from midstream.model.errors import LanguageError
from midstream.model.schema import uuid_field
from midstream.sql.place import place_of


class _Spark(Spark):
    """Spark's words for types, where TIMESTAMP has no zone: a schema has one meaning in every host."""

    class Tokenizer(Spark.Tokenizer):
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "TIMESTAMP": TokenType.TIMESTAMP}


_REMEDY = "write columns as: name TYPE, name TYPE, such as: k BIGINT, ts TIMESTAMP, v DOUBLE"
_HEAD = "CREATE TABLE t ("


def parse_ddl(text: str) -> pa.Schema:
    """The Arrow schema of a list of columns in SQL; the type names of Spark and of DuckDB are understood.

    TIMESTAMP is timestamp[us] without a zone, which midstream takes for UTC. Raises LanguageError with the place.

    >>> parse_ddl("k BIGINT, ts TIMESTAMP, price DECIMAL(10, 2) NOT NULL").types
    [DataType(int64), TimestampType(timestamp[us]), Decimal128Type(decimal128(10, 2))]
    >>> parse_ddl("ts TIMESTAMP, s STRUCT<at: TIMESTAMP>, u TIMESTAMP_LTZ").types
    [TimestampType(timestamp[us]), StructType(struct<at: timestamp[us]>), TimestampType(timestamp[us, tz=UTC])]
    """
    columns, faults = read_ddl(text)
    if faults:
        raise faults[0]
    return columns


def read_ddl(text: str) -> tuple[pa.Schema, list[LanguageError]]:
    """Read a list of columns in SQL as far as possible.

    Returns: the columns, and all faults. A column whose type has a fault has the type null.

    >>> columns, faults = read_ddl("k BIGNT, ts TIMESTAMP, v DUBLE")
    >>> columns.names, [fault.place for fault in faults]
    (['k', 'ts', 'v'], ['line 1, column 1', 'line 1, column 24'])
    """
    read = _read(text, "duckdb")
    return read if not read[1] else min(read, _read(text, _Spark), key=lambda one: (not one[0].names, len(one[1])))


def columns_of(schema: pa.Schema | str) -> pa.Schema:
    """The columns that a user declares, as an Arrow schema or as text; raises LanguageError for anything else."""
    if isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, str):
        raise LanguageError(f"a {type(schema).__name__} is not a schema", place="schema", remedy=_REMEDY)
    return parse_ddl(schema)


def _read(text: str, dialect: str | type[Spark]) -> tuple[pa.Schema, list[LanguageError]]:
    try:
        tree = sqlglot.parse_one(f"{_HEAD}{text}\n)", read=dialect)
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        spot = _place(details.get("line", 1), details.get("col", 1))
        return pa.schema([]), [LanguageError(f"the schema {text!r} cannot be read", place=spot, remedy=_REMEDY)]
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) and column.args.get("kind") for column in columns):
        message = f"the schema {text!r} is not a list of columns"
        return pa.schema([]), [LanguageError(message, place=_place(1, 0), remedy=_REMEDY)]
    fields: list[pa.Field] = []
    faults: list[LanguageError] = []
    for column in columns:
        line, number = (int(word) for word in place_of(f"{_HEAD}{text}", column)[5:].split(", column "))
        spot = _place(line, number)
        if column.name.lower() in {field.name.lower() for field in fields}:
            message = f"column {column.name!r} is declared twice"
            faults.append(LanguageError(message, place=spot, remedy="rename one of the columns"))
            continue
        try:
            kind = column.args["kind"]
            is_uuid = kind.this == exp.DType.UUID
            fields.append(uuid_field(column.name) if is_uuid else pa.field(column.name, from_sql(kind)))
        except LanguageError as error:
            faults.append(LanguageError(error.message, place=spot, remedy=error.remedy))
            fields.append(pa.field(column.name, pa.null()))
    return pa.schema(fields), faults


def _place(line: int, column: int) -> str:
    """Return a place in the text, of a place in the statement that was built around it."""
    return f"line {line}, column {max(column - (len(_HEAD) if line == 1 else 0), 1)}"
