"""A job file's streams as Spark is asked to read them; a session that only takes notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql import types as T

import midstream as ms
from midstream.cli.main import main
from midstream.cli.spark_job import _read, job_of
from midstream.model import allowed
from midstream.model.allowed import check_source
from midstream.model.errors import InputError, LanguageError
from midstream.spark.kafka_frames import frame_of
from midstream.sql.job_file import parse_job
from midstream.sql.job_specs import SourceSpec


def spec(format: str, **given: Any) -> SourceSpec:
    return SourceSpec(**{"format": format, "path": None, "schema": None, "timestamp": "ts", **given})


BY_CONNECTOR = spec("kafka", options={"kafka.bootstrap.servers": "k:9092", "subscribePattern": "orders-.*"})


def declared(**kinds: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


def reader(session: MagicMock) -> MagicMock:
    chosen: MagicMock = session.readStream.format.return_value.options.return_value
    return chosen


def test_any_format_with_options() -> None:
    session = MagicMock()
    frame = _read(session, "A", spec("rate", timestamp="timestamp", options={"rowsPerSecond": "5"}), None)
    session.readStream.format.assert_called_once_with("rate")
    session.readStream.format.return_value.options.assert_called_once_with(rowsPerSecond="5")
    assert frame is reader(session).load.return_value
    reader(session).schema.assert_not_called()


def test_files_without_a_schema_are_looked_into() -> None:
    session = MagicMock()
    _read(session, "A", spec("csv", path="in", options={"header": "false"}), None)
    options = {"header": "false", "inferSchema": "true"}
    session.read.format.return_value.options.assert_called_once_with(**options)
    session.readStream.format.return_value.options.assert_called_once_with(enforceSchema="false", **options)
    found = session.read.format.return_value.options.return_value.load.return_value.schema
    reader(session).schema.assert_called_once_with(found)


def test_of_text_spark_brings_text() -> None:
    """It would give NULL for a value that is none of the declared type."""
    session = MagicMock()
    _read(session, "A", spec("json", path="in"), declared(k=T.LongType(), list=T.ArrayType(T.LongType())))
    (asked,) = reader(session).schema.call_args.args
    assert asked == declared(k=T.StringType(), list=T.ArrayType(T.LongType()), _corrupt_record=T.StringType())
    session.read.format.assert_not_called()


def test_a_schema_that_is_given_is_taken() -> None:
    """Where the user says how values are written, and where there is no file yet to hold other types."""
    for given in (spec("json", path="in", options={"timestampFormat": "yyyy"}), spec("rate")):
        session = MagicMock()
        _read(session, "A", given, declared(ts=T.TimestampType()))
        reader(session).schema.assert_called_once_with(declared(ts=T.TimestampType()))
        session.read.format.assert_not_called()


def test_files_that_know_their_types_bring_those_that_lose_nothing() -> None:
    session = MagicMock()
    found = session.read.format.return_value.options.return_value.load
    found.return_value.schema = declared(k=T.StringType(), n=T.IntegerType(), more=T.DateType())
    _read(session, "A", spec("parquet", path="in"), declared(k=T.LongType(), n=T.LongType(), new=T.LongType()))
    (asked,) = reader(session).schema.call_args.args
    assert asked == declared(k=T.StringType(), n=T.LongType(), new=T.LongType())


def test_how_queries_share_and_the_limit_of_memory_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = MagicMock()
    monkeypatch.setattr(ms, "Job", made, raising=False)
    query = 'sql = "SELECT A.k FROM A"\nsink = { format = "json", path = "out" }\n'
    text = f"""
        checkpoint = "ckpt"
        sharing = "mem_opt"
        memory = "4 GB"
        [streams.A]
        format = "rate"
        timestamp = "timestamp"
        [queries.old]
        {query}
        [queries.new]
        {query}
        history = false
    """
    session = MagicMock()
    job_of(session, parse_job(text))
    made.assert_called_once_with(session, checkpoint="ckpt", lanes=1, sharing="mem_opt", memory=4_000_000_000)
    history = {call.args[0].query: call.args[0].history for call in made.return_value.declare_query.call_args_list}
    assert history == {"old": True, "new": False}


def test_without_a_schema_kafkas_own_columns_are_the_streams() -> None:
    """What a schema makes of values is in tests/spark/test_kafka.py."""
    session = MagicMock()
    assert frame_of(session, "A", BY_CONNECTOR, 0) is reader(session).load.return_value


def test_an_error_of_sparks_connector_names_its_place() -> None:
    session = MagicMock()
    reader(session).load.side_effect = RuntimeError("cannot\n\tat some.java.Class")
    with pytest.raises(InputError, match="Spark cannot read stream 'A': cannot") as error:
        frame_of(session, "A", BY_CONNECTOR, 0)
    assert error.value.place == "[streams.A]" and "Spark's Kafka package" in error.value.remedy


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ('value = "jason"', "value is 'jason'"),
        ('format = "json"\nvalue = "json"', "the format is 'json'"),
        ('value = "json"', "schema is missing"),
    ],
)
def test_what_value_may_say(changed: str, message: str) -> None:
    format = "" if "format" in changed else 'format = "kafka"\n'
    with pytest.raises(LanguageError, match=message):
        parse_job(f'checkpoint = "c"\n[streams.A]\n{format}{changed}\ntimestamp = "ts"\n')


@pytest.mark.parametrize(
    ("source", "remedy"),
    [(spec("parquet", path="in"), "schema ="), (spec("nonsense"), "format")],
)
def test_an_error_of_sparks_readers_names_its_place(source: SourceSpec, remedy: str) -> None:
    session = MagicMock()
    reader(session).load.side_effect = RuntimeError("cannot\n\tat some.java.Class")
    session.read.format.return_value.options.return_value.load.side_effect = RuntimeError(
        "cannot\n\tat some.java.Class"
    )
    with pytest.raises(InputError) as error:
        _read(session, "A", source, None)
    assert error.value.place == "[streams.A]" and "java" not in error.value.message and remedy in error.value.remedy


def test_a_job_file_with_a_scheme_that_is_not_there_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("midstream.cli.run._run_on_spark", MagicMock(side_effect=AssertionError("it was started")))
    path = tmp_path / "job.toml"
    path.write_text('checkpoint = "c"\nsharing = "some"\n[streams.A]\nformat = "rate"\ntimestamp = "timestamp"\n')
    assert main(["run", str(path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"unknown sharing 'some' (at {path}, line 2, sharing). Remedy: use one of: auto, cpu_opt" in error


HOSTILE = {
    "jdbc": 'format = "jdbc"\noptions = { url = "jdbc:h2:mem:;INIT=RUNSCRIPT FROM \'x\'", driver = "org.h2.Driver" }',
    "a class": 'format = "com.evil.Source"',
    "a class of Spark": 'format = "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider"',
    "a Python source": 'format = "python"',
    "a socket": 'format = "socket"\noptions = { host = "10.0.0.1", port = 22 }',
    "files removed": 'format = "parquet"\npath = "/home"\noptions = { cleanSource = "delete" }',
    "in capitals": 'format = "PARQUET"\npath = "/home"\noptions = { CLEANSOURCE = "delete" }',
    "files moved": 'format = "csv"\npath = "/home"\noptions = { sourceArchiveDir = "/tmp/x" }',
    "a file system": 'format = "csv"\npath = "evil://x"\noptions = { "fs.evil.impl" = "com.evil.FileSystem" }',
    "another path": 'format = "csv"\npath = "in"\noptions = { path = "/etc/passwd" }',
    "a schema's URL": 'format = "avro"\npath = "in"\noptions = { avroSchemaUrl = "file:///etc/passwd" }',
    "a login": 'format = "kafka"\noptions = { "kafka.sasl.jaas.config" = "com.sun.JndiLoginModule" }',
    "an interceptor": 'format = "kafka"\noptions = { "kafka.interceptor.classes" = "com.evil.Interceptor" }',
    "a token's URL": 'format = "kafka"\noptions = { "kafka.sasl.oauthbearer.token.endpoint.url" = "file:///x" }',
}


@pytest.fixture
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed, "_SOURCES", set())


@pytest.mark.usefixtures("nothing_allowed")
@pytest.mark.parametrize("stream", HOSTILE.values(), ids=HOSTILE)
def test_spark_hears_nothing_of_a_hostile_source(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ms, "Job", MagicMock(), raising=False)
    session = MagicMock()
    file = parse_job(f'checkpoint = "c"\n[streams.A]\ntimestamp = "ts"\n{stream}')
    with pytest.raises(InputError, match=r"comes from the job file.*\[streams.A\].*--allow-source "):
        job_of(session, file)
    assert session.mock_calls == []


@pytest.mark.usefixtures("nothing_allowed")
def test_a_source_that_the_program_allows_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = MagicMock(side_effect=InputError("it was started", place="here", remedy="none"))
    monkeypatch.setattr("midstream.cli.run._run_on_spark", started)
    path = tmp_path / "job.toml"
    where = '"kafka.bootstrap.servers" = "k:1", subscribe = "a"'
    options = f'options = {{ "kafka.sasl.jaas.config" = "x", {where} }}'
    path.write_text(f'checkpoint = "c"\n[streams.A]\nformat = "kafka"\n{options}\ntimestamp = "timestamp"\n')
    assert main(["run", str(path)]) == 2
    assert "--allow-source kafka:kafka.sasl.jaas.config" in "".join(capsys.readouterr().err.split("\n"))
    started.assert_not_called()
    main(["run", str(path), "--allow-source", "kafka:kafka.sasl.jaas.config"])
    started.assert_called_once()
    ms.allow_sources("delta")
    check_source("delta", ["whatever"], "")
