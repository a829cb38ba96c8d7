"""Schemas that a job file declares, and the types in which Spark shall bring such columns.

Spark's readers give NULL for a value that is none of the requested type. Read as text, or for the type that
a file itself has, they lose nothing, and the stream reads the values as declared.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from midstream.language.ddl import parse_ddl
from midstream.model.errors import InputError
from midstream.spark.sources import arrow_type
from midstream.step.admission.reading import never_fails

_NOT_OF_TEXT = (T.ArrayType, T.MapType, T.StructType, T.BinaryType, T.VariantType)


def declared_schema(session: Any, ddl: str) -> T.StructType:
    """The columns of a DDL text: in Spark's words or, where Spark cannot read it, in those of the embedded engine.

    So VARCHAR is text here as there; TIMESTAMP is Spark's in both. Raises LanguageError where neither reads it.
    """
    try:
        schema: T.StructType = session.createDataFrame([], ddl).schema
    except (PySparkException, ValueError):
        columns = parse_ddl(ddl)
        schema = T.StructType([T.StructField(column.name, _spark_type(column)) for column in columns])
    return schema


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


def ddl_of(schema: T.StructType) -> str:
    """The columns as DDL text."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema)


def _spark_type(column: pa.Field) -> T.DataType:
    if pa.types.is_timestamp(column.type):
        return T.TimestampType()
    try:
        return from_arrow_type(column.type)
    except PySparkException as error:
        raise InputError(
            f"column {column.name!r} of type {column.type} cannot be carried by Spark",
            place="schema",
            remedy="declare it with a type that Spark has",
        ) from error


def _lossless(field: T.StructField, own: T.StructType) -> T.StructField:
    found = own[field.name].dataType if field.name in own.names else field.dataType
    given, declared = arrow_type(found), arrow_type(field.dataType)
    fails = given is not None and declared is not None and not never_fails(given, declared)
    return T.StructField(field.name, found) if fails and not isinstance(found, _NOT_OF_TEXT) else field
