"""Runs a course on Spark by the code of format 1: `python early_spark_run.py ROOT`, with that code on the path.

It imports nothing but midstream, Arrow and Spark. In ROOT are the course as data and the input; checkpoint and answers
go there too. Where `MIDSTREAM_KILL_AT` says so, that code kills itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

import midstream as ms


def main(root: Path) -> None:
    # None of these is where it was, so a checker of today's code looks for them in vain.
    from midstream.model import commands  # type: ignore[attr-defined]
    from midstream.spark.driver import Driver
    from midstream.spark.session import local_session
    from midstream.state.command_log import CommandLog  # type: ignore[import-not-found]

    told = json.loads((root / "course.json").read_text())
    log = CommandLog(root / "checkpoint" / "commands")
    fold_of_then: Any = Driver.fold

    def fold(self: Any, batch: Any, number: int) -> None:
        given = [command for _, command in log.after(0)]
        for method, arguments, options in told["calls"].get(str(number), []) if number else []:
            command = _command(commands, method, arguments, options, root)
            if command not in given:
                log.append(command)
        fold_of_then(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    spark = local_session("kept")
    job: Any = ms.Job(spark, root / "checkpoint", told["lanes"])
    for stream in told["streams"]:
        schema = from_arrow_schema(_schema(root / f"{stream['name']}.arrow"), prefer_timestamp_ntz=True)
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        name = stream.pop("name")
        job.stream(name, reader.parquet(str(root / "in" / name)), **stream)
    for method, (name, sql), options in told["calls"]["0"]:
        assert method == "add_query"
        job.query(name, sql, options["plan"], ms.sinks.files(root / "answers" / name))
    assert job.start(trigger={"availableNow": True}).await_termination(300)


def _command(commands: Any, method: str, arguments: list[Any], options: dict[str, Any], root: Path) -> Any:
    match method:
        case "add_query":
            sink = {"path": str(root / "answers" / arguments[0]), "format": "parquet"}
            return commands.AddQuery(*arguments, options["plan"], sink)
        case "migrate":
            return commands.Migrate(*arguments, options)
        case "drop_query":
            return commands.DropQuery(*arguments)
        case "rescale":
            return commands.Rescale(*arguments)
    raise TypeError(method)


def _schema(path: Path) -> pa.Schema:
    with pa.ipc.open_file(path) as file:
        return file.schema


if __name__ == "__main__":
    main(Path(sys.argv[1]))
