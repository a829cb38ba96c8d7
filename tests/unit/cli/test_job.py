"""A job file's streams as Spark is asked to read them; a session that only takes notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import midstream as ms
from midstream.cli.job import _read, job_of
from midstream.cli.main import main
from midstream.language.job_file import SourceSpec, parse_job
from midstream.model.errors import InputError


def spec(format: str, **given: Any) -> SourceSpec:
    return SourceSpec(**{"format": format, "path": None, "schema": None, "timestamp": "ts", **given})


def reader(session: MagicMock) -> MagicMock:
    chosen: MagicMock = session.readStream.format.return_value.options.return_value
    return chosen


def test_any_format_with_options() -> None:
    session = MagicMock()
    frame = _read(session, "A", spec("rate", timestamp="timestamp", options={"rowsPerSecond": "5"}))
    session.readStream.format.assert_called_once_with("rate")
    session.readStream.format.return_value.options.assert_called_once_with(rowsPerSecond="5")
    assert frame is reader(session).load.return_value
    reader(session).schema.assert_not_called()


def test_files_without_a_schema_are_looked_into() -> None:
    session = MagicMock()
    _read(session, "A", spec("csv", path="in", options={"header": "false"}))
    options = {"header": "false", "inferSchema": "true"}
    session.read.format.return_value.options.assert_called_once_with(**options)
    session.readStream.format.return_value.options.assert_called_once_with(**options)
    found = session.read.format.return_value.options.return_value.load.return_value.schema
    reader(session).schema.assert_called_once_with(found)


def test_a_schema_that_is_given_is_taken() -> None:
    session = MagicMock()
    _read(session, "A", spec("json", path="in", schema="ts TIMESTAMP"))
    reader(session).schema.assert_called_once_with("ts TIMESTAMP")
    session.read.format.assert_not_called()


def test_how_queries_share_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = MagicMock()
    monkeypatch.setattr(ms, "Job", made, raising=False)
    query = 'sql = "SELECT A.k FROM A"\nsink = { format = "json", path = "out" }\n'
    text = f"""
        checkpoint = "ckpt"
        sharing = "mem_opt"
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
    made.assert_called_once_with(session, checkpoint="ckpt", lanes=1, sharing="mem_opt")
    history = {call.args[0]: call.kwargs["history"] for call in made.return_value.query.call_args_list}
    assert history == {"old": True, "new": False}


def test_kafka_values_are_read_as_json_of_the_schema() -> None:
    session = MagicMock()
    _read(session, "A", spec("kafka", schema="k BIGINT COMMENT 'it''s', ts TIMESTAMP"))
    topic = reader(session).load.return_value
    (expression,) = topic.selectExpr.call_args.args
    assert (
        expression.startswith("from_json(CAST(value AS STRING), 'k BIGINT COMMENT \\'it") and "AS value" in expression
    )
    topic.selectExpr.return_value.select.assert_called_once_with("value.*")
    assert _read(session, "A", spec("kafka")) is topic


@pytest.mark.parametrize(
    ("source", "remedy"),
    [(spec("parquet", path="in"), "schema ="), (spec("kafka"), "bootstrap"), (spec("nonsense"), "format")],
)
def test_what_spark_cannot_read_is_told_with_its_place(source: SourceSpec, remedy: str) -> None:
    session = MagicMock()
    reader(session).load.side_effect = RuntimeError("cannot\n\tat some.java.Class")
    session.read.format.return_value.options.return_value.load.side_effect = RuntimeError(
        "cannot\n\tat some.java.Class"
    )
    with pytest.raises(InputError) as error:
        _read(session, "A", source)
    assert error.value.place == "[streams.A]" and "java" not in error.value.message and remedy in error.value.remedy


def test_a_job_file_with_a_scheme_that_is_not_there_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("midstream.cli.run._run", MagicMock(side_effect=AssertionError("it was started")))
    path = tmp_path / "job.toml"
    path.write_text('checkpoint = "c"\nsharing = "some"\n[streams.A]\nformat = "rate"\ntimestamp = "timestamp"\n')
    assert main(["run", str(path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert f"unknown sharing 'some' (at {path}, sharing). Remedy: use one of: auto, cpu_opt" in error
