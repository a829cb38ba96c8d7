"""Schemas that a job file declares, and the types in which Spark shall bring such columns.

Spark's readers give NULL for a value that is none of the requested type. Read as text, or for the type that
a file itself has, they lose nothing, and the stream reads the values as declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type

from midstream.admission.reading import never_fails
from midstream.admission.refused_rows import CORRUPT
from midstream.model.errors import InputError
from midstream.model.schema import is_uuid, uuid_field
from midstream.spark.job_streams import arrow_type
from midstream.sql.ddl import parse_ddl

_NOT_OF_TEXT = (T.ArrayType, T.MapType, T.StructType, T.BinaryType, T.VariantType)


def declared_schema(ddl: str, place: str = "schema") -> T.StructType:
    """Return the columns of a DDL text in Spark's types: TIMESTAMP has no zone, as in the embedded engine.

    Raises LanguageError where the text is not a schema, and InputError where Spark lacks a type that Arrow has.
    """
    fields = [(field, {"uuid": True} if is_uuid(field) else None) for field in parse_ddl(ddl)]
    return T.StructType([T.StructField(f.name, _spark_type(f, place), metadata=told) for f, told in fields])


def _spark_type(field: pa.Field, place: str) -> T.DataType:
    try:
        found = from_arrow_type(field.type, prefer_timestamp_ntz=True)
    except Exception:  # Spark has no common class for the types that it lacks.
        found = None
    if found is None or isinstance(found, T.TimeType):  # Spark has times of a day in other units.
        raise InputError(
            f"column {field.name!r} of type {field.type} cannot be used on Spark",
            place=place,
            remedy="declare the column with a type of Spark, such as BIGINT, DECIMAL(20, 0) or STRING",
        )
    return found


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the columns in Arrow's types, as Spark hands them over."""
    kinds = [pa.field(field.name, arrow_type(field.dataType)) for field in schema]
    return pa.schema([uuid_field(one.name) if schema[one.name].metadata.get("uuid") else one for one in kinds])


def as_read(kind: T.DataType) -> T.DataType:
    """Return the type in which Spark reads values: times with a zone, which it reads from files of either kind.

    >>> as_read(T.ArrayType(T.TimestampNTZType()))
    ArrayType(TimestampType(), True)
    """
    if isinstance(kind, T.TimestampNTZType):
        return T.TimestampType()
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(as_read(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(as_read(kind.keyType), as_read(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(field.name, as_read(field.dataType), field.nullable) for field in kind])
    return kind


def as_text(schema: T.StructType) -> T.StructType:
    """Replace the types of the columns by text, except those that have no plain form of text."""
    return T.StructType(
        [
            field if isinstance(field.dataType, _NOT_OF_TEXT) else T.StructField(field.name, T.StringType())
            for field in schema
        ]
    )


def as_found(schema: T.StructType, own: T.StructType) -> T.StructType:
    """Return the columns as declared, except where files hold a type with values beyond the declared one."""
    return T.StructType([_lossless(field, own) for field in schema])


def with_corrupt_lines(schema: T.StructType) -> T.StructType:
    """Add a column for the lines that are not JSON objects, for which Spark has NULLs otherwise."""
    return schema if CORRUPT in schema.names else T.StructType([*schema, T.StructField(CORRUPT, T.StringType())])


def in_order(schema: T.StructType, names: Mapping[str, str], header: Sequence[str]) -> T.StructType:
    """Put the columns in the order of a header; `names` maps names in the header to declared ones."""
    return T.StructType([schema[names[one]] if one in names else T.StructField(one, T.StringType()) for one in header])


def _lossless(field: T.StructField, own: T.StructType) -> T.StructField:
    found = own[field.name].dataType if field.name in own.names else field.dataType
    given, declared = arrow_type(found), arrow_type(field.dataType)
    fails = given is not None and declared is not None and not never_fails(given, declared)
    return T.StructField(field.name, found) if fails and not isinstance(found, _NOT_OF_TEXT) else field
