"""Rows of a Kafka topic whose values are JSON objects.

Kafka brings bytes: of a message its key and value, and the topic, partition, offset and time it has there. Spark's
`from_json` reads an object's fields as text, the stream reads the texts as declared, and nothing is lost on the way: a
value that is not a JSON object is a dead letter that holds the value.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from midstream.embedded.kafka_source import KafkaSource
from midstream.model.errors import InputError
from midstream.model.spark_cause import stream_error
from midstream.spark.declared import as_read, as_text, declared_schema
from midstream.spark.topic import topic_stream
from midstream.spark.whole_files import WholeFiles
from midstream.sql.job_specs import KAFKA_COLUMNS, SourceSpec

_MALFORMED = "_midstream_malformed"
_TIME_AS_TEXT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def frame_of(session: SparkSession, name: str, spec: SourceSpec, patience: int) -> DataFrame | WholeFiles:
    """Read a stream of a job file from Kafka: by our own client, or by Spark's connector where its options need that.

    The connector gives JSON objects of the stream's schema, and without one Kafka's own columns.
    """
    topic = KafkaSource.for_spark(name, spec)
    if topic is not None:
        return topic_stream(session, topic, patience)
    place = f"[streams.{name}]"
    lossy = {"failOnDataLoss": "false"} if spec.on_data_loss == "skip" else {}
    try:
        frame = session.readStream.format(spec.format).options(**lossy, **spec.options).load()
    except Exception as error:  # Spark has no common class for what its sources raise.
        remedy = "correct its options, and put Spark's Kafka package on the class path: docs/kafka.md"
        raise stream_error(name, error, remedy) from error
    if spec.schema is None:
        return frame
    declared = as_read(declared_schema(spec.schema, place))
    assert isinstance(declared, T.StructType)
    return json_rows(frame, declared, spec.timestamp, place)


def json_rows(frame: DataFrame, declared: T.StructType, timestamp: str, place: str = "Kafka") -> DataFrame:
    """Read messages whose values are JSON objects as the declared columns, over a DataFrame as Spark reads it from
    Kafka.

    They come as text, to be read as declared: `job.stream(name, json_rows(...), timestamp, schema=...)`. A column that
    an object has not is NULL. `kafka_key`, `kafka_topic`, `kafka_partition`, `kafka_offset` and `kafka_timestamp` are
    Kafka's own, and any of them may be the timestamp. Where a value is not a JSON object, or text is asked for of bytes
    that are none, the timestamp is a text that says so and ends in the value: the stream makes it a dead letter.
    """
    _check(frame, declared, place)
    value = F.try_validate_utf8(F.col("value").cast("string"))
    fields = T.StructType([_as_carried(field) for field in declared if field.name not in KAFKA_COLUMNS])
    # Spark reads the first object and passes over what follows it; in an array and in an object there must be but one.
    wrapped = F.concat(F.lit('{"v":'), value, F.lit("}"))
    schema = T.StructType([T.StructField("v", fields), T.StructField(_MALFORMED, T.StringType())])
    parsed = F.from_json(wrapped, schema, {"columnNameOfCorruptRecord": _MALFORMED})
    alone = F.coalesce(F.json_array_length(F.concat(F.lit("["), value, F.lit("]"))) == 1, F.lit(False))
    rows = frame.select("*", parsed.alias("_parsed"), alone.alias("_alone"))
    is_object = F.col("_alone") & F.col("_parsed.v").isNotNull() & F.col(f"_parsed.{_MALFORMED}").isNull()
    problem = F.when(~is_object, _says("not a JSON object", "value"))
    if (misspelt := _misspelt(F.json_object_keys(value), fields.names)) is not None:
        problem = problem.when(misspelt, _says("a key differs from its column by case", "value"))
    if any(_is_text_of_key(field) for field in declared):
        no_text = F.col("key").isNotNull() & F.try_validate_utf8(F.col("key").cast("string")).isNull()
        problem = problem.when(no_text, _says("the key is not a string", "key"))
    columns = [_column(field, field.name == timestamp, problem) for field in declared]
    return rows.select(*columns)


def _misspelt(keys: Column, names: list[str]) -> Column | None:
    """Return whether a key differs from a column by case, which `from_json` takes for another one."""
    of_each = [
        ~F.array_contains(keys, name) & F.array_contains(F.transform(keys, F.lower), name.lower()) for name in names
    ]
    return reduce(Column.__or__, of_each) if of_each else None


def _check(frame: DataFrame, declared: T.StructType, place: str) -> None:
    unknown = [field.name for field in declared if field.name.startswith("kafka_") and field.name not in KAFKA_COLUMNS]
    if unknown:
        remedy = f"use one of: {', '.join(KAFKA_COLUMNS)}"
        raise InputError(f"Kafka's messages have no field {unknown[0]!r}", place=place, remedy=remedy)
    asked = {"value", *(KAFKA_COLUMNS[field.name] for field in declared if field.name in KAFKA_COLUMNS)}
    missing = sorted(asked - set(frame.columns))
    if missing:
        remedy = "read it with format kafka, as it is"
        raise InputError(f"the DataFrame has no column {missing[0]!r}", place=place, remedy=remedy)


def _as_carried(field: T.StructField) -> T.StructField:
    # Text, except for what has no plain text, and for decimals, because Spark makes text of a number by a double. Of
    # decimals all digits behind the point are kept, so that one with too many is seen.
    kind = field.dataType
    if isinstance(kind, T.DecimalType):
        return T.StructField(field.name, T.DecimalType(38, 38 - (kind.precision - kind.scale)))
    return as_text(T.StructType([field])).fields[0]


def _says(what: str, column: str) -> Column:
    # No time is read from this text, however the value looks.
    text = F.make_valid_utf8(F.col(column).cast("string"))
    return F.concat(F.lit(f"{what}: "), F.coalesce(text, F.lit("there is none")))


def _column(field: T.StructField, is_timestamp: bool, problem: Column) -> Column:
    if field.name not in KAFKA_COLUMNS:
        found = F.col("_parsed").getField("v").getField(field.name)
    else:
        found = F.col(KAFKA_COLUMNS[field.name])
        if is_timestamp and field.name == "kafka_timestamp":
            found = F.date_format(found, _TIME_AS_TEXT)
        elif is_timestamp or _is_text_of_key(field):
            found = F.try_validate_utf8(found.cast("string"))
    return (F.coalesce(problem, found.cast("string")) if is_timestamp else found).alias(field.name)


def _is_text_of_key(field: T.StructField) -> bool:
    return field.name == "kafka_key" and not isinstance(field.dataType, T.BinaryType)
