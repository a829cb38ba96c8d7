"""Schemas that a job file declares, and the types in which Spark shall bring such columns.

Spark's readers give NULL for a value that is none of the requested type. Read as text, or for the type that
a file itself has, they lose nothing, and the stream reads the values as declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from sqlglot import exp
from sqlglot.errors import SqlglotError

from midstream.language.ddl import parse_ddl
from midstream.model.errors import InputError, LanguageError
from midstream.spark.sources import arrow_type
from midstream.step.admission.outputs import CORRUPT
from midstream.step.admission.reading import never_fails

_NOT_OF_TEXT = (T.ArrayType, T.MapType, T.StructType, T.BinaryType, T.VariantType)


def declared_schema(session: Any, ddl: str) -> T.StructType:
    """The columns of a DDL text, in Spark's understanding of it; Spark need not know the spelling, such as VARCHAR.

    Raises LanguageError where the text is no schema, and InputError where Spark lacks a type that Arrow has.
    """
    try:
        return _schema(session, ddl)
    except Exception:  # Spark has no common class: VARCHAR(n) fails within the JVM.
        meant = parse_ddl(ddl)
    try:
        respelt = _respelt(ddl)
        if parse_ddl(respelt) == meant:
            return _schema(session, respelt)
    except (PySparkException, SqlglotError, LanguageError):
        pass
    raise InputError(
        f"Spark cannot read {ddl!r}",
        place="schema",
        remedy="write types that Spark has, such as STRING for texts",
    )


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The columns in Arrow's types, but for those of a type that Arrow has not."""
    kinds = {field.name: arrow_type(field.dataType) for field in schema}
    return pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])


def as_text(schema: T.StructType) -> T.StructType:
    """The columns as text, but for those that have no plain form of text."""
    return T.StructType(
        [
            field if isinstance(field.dataType, _NOT_OF_TEXT) else T.StructField(field.name, T.StringType())
            for field in schema
        ]
    )


def as_found(schema: T.StructType, own: T.StructType) -> T.StructType:
    """The columns as declared, but for those that files hold as a type with values beyond the declared one."""
    return T.StructType([_lossless(field, own) for field in schema])


def with_corrupt_lines(schema: T.StructType) -> T.StructType:
    """The columns, with the lines that are no JSON objects, of which Spark has NULLs otherwise."""
    return schema if CORRUPT in schema.names else T.StructType([*schema, T.StructField(CORRUPT, T.StringType())])


def in_order(schema: T.StructType, names: Mapping[str, str], header: Sequence[str]) -> T.StructType:
    """The columns in the order of a header; `names` are the declared ones of those that are declared."""
    return T.StructType([schema[names[one]] if one in names else T.StructField(one, T.StringType()) for one in header])


def _schema(session: Any, ddl: str) -> T.StructType:
    schema: T.StructType = session.createDataFrame([], ddl).schema
    return schema


def _respelt(ddl: str) -> str:
    """The columns in Spark's spelling, texts of any length as STRING."""
    tree = sqlglot.parse_one(f"CREATE TABLE t ({ddl}\n)", read="spark")
    for kind in tree.find_all(exp.DataType):
        if kind.is_type(*exp.DataType.TEXT_TYPES):
            kind.replace(exp.DataType.build("text"))
    return ", ".join(column.sql("spark") for column in tree.this.expressions)


def _lossless(field: T.StructField, own: T.StructType) -> T.StructField:
    found = own[field.name].dataType if field.name in own.names else field.dataType
    given, declared = arrow_type(found), arrow_type(field.dataType)
    fails = given is not None and declared is not None and not never_fails(given, declared)
    return T.StructField(field.name, found) if fails and not isinstance(found, _NOT_OF_TEXT) else field
