"""Schemas in words: `k BIGINT, ts TIMESTAMP, v DOUBLE`."""

from __future__ import annotations

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from midstream.language.place import place, place_of
from midstream.language.types import from_sql
from midstream.model.errors import LanguageError

_REMEDY = "write columns as: name TYPE, name TYPE, such as: k BIGINT, ts TIMESTAMP, v DOUBLE"
_HEAD = "CREATE TABLE t ("


def parse_ddl(text: str) -> pa.Schema:
    """The Arrow schema of a list of columns in SQL; the type names of Spark and of DuckDB are understood.

    TIMESTAMP is timestamp[us] without a zone, which midstream takes for UTC. Raises LanguageError with the place.

    >>> parse_ddl("k BIGINT, ts TIMESTAMP, price DECIMAL(10, 2) NOT NULL").types
    [DataType(int64), TimestampType(timestamp[us]), Decimal128Type(decimal128(10, 2))]
    """
    columns, failure = list[exp.ColumnDef](), "it is no list of columns"
    spot = place(text, 0)
    for dialect in ("duckdb", "spark"):
        try:
            tree = sqlglot.parse_one(f"{_HEAD}{text}\n)", read=dialect)
            found = list(tree.this.expressions) if isinstance(tree.this, exp.Schema) else []
        except SqlglotError as error:
            details = getattr(error, "errors", None) or [{}]
            line, column = details[0].get("line", 1), details[0].get("col", 1)
            spot = f"line {line}, column {max(column - (len(_HEAD) if line == 1 else 0), 1)}"
            failure = "it cannot be read"
            continue
        if found and all(isinstance(column, exp.ColumnDef) and column.args.get("kind") for column in found):
            columns = found
            break
    if not columns:
        raise LanguageError(f"not a schema: {text!r}, {failure}", place=spot, remedy=_REMEDY)
    fields: list[pa.Field] = []
    for column in columns:
        where = place_of(f"{_HEAD}{text}", column)
        line, number = (int(word) for word in where.replace("line ", "").split(", column "))
        spot = f"line {line}, column {number - (len(_HEAD) if line == 1 else 0)}"
        if column.name.lower() in {field.name.lower() for field in fields}:
            raise LanguageError(f"column {column.name!r} is there twice", place=spot, remedy="rename one of them")
        try:
            fields.append(pa.field(column.name, from_sql(column.args["kind"])))
        except LanguageError as error:
            raise LanguageError(error.message, place=spot, remedy=error.remedy) from error
    return pa.schema(fields)
