"""A query's results as DataFrames: those of a step for a function, and all as a stream for the next job.

A sink of files puts the results of each step in place atomically and never changes them. So Spark's own file source
over its folders brings every row once, and the job that reads it notes in its checkpoint which files it has read: a row
that the first job answered is in the second one exactly once, whichever of them is killed. On an object store a source
of our own reads step by step, and what the second job notes is the last step that it has read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.model.errors import QueryError, SinkError
from midstream.model.manifest import Manifest
from midstream.pipeline.results import committed_results
from midstream.sinks import FileSink, StagedStep
from midstream.spark.delivered_source import FILES_A_STEP, FORMAT, ResultsDataSource
from midstream.spark.session import ship
from midstream.sql.job_specs import SourceSpec, read_results
from midstream.storage.local import LocalStorage
from midstream.storage.places import located, storage_at

_GLOB = re.compile(r"[\\*?\[\]{}]")


@dataclass(frozen=True)
class DataFrames:
    """Makes a DataFrame of a step's results, of staged Parquet files: Spark reads them where its own file systems can,
    else the driver does.
    """

    session: SparkSession

    def __call__(self, staged: StagedStep) -> DataFrame:
        """Make a DataFrame of the results of a step."""
        if not isinstance(staged.staging.storage, LocalStorage):
            table = staged.table()
            return self.session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        first = pa.BufferReader(staged.staging.storage.mapped(staged.files[0]))
        schema = from_arrow_schema(pyarrow.parquet.read_schema(first), prefer_timestamp_ntz=True)
        return self.session.read.schema(schema).parquet(*staged.paths)


def results_stream(
    spark: SparkSession, checkpoint: str | os.PathLike[str], query: str, **options: str | int
) -> DataFrame:
    """Read the results of a query of another job, running or not, as a streaming DataFrame.

    `checkpoint` is the checkpoint of the other job, which must have finished a step. `options` are the options of
    Spark's file source; on an object store the only option is `maxFilesPerTrigger`. If the other job goes back, it
    repeats steps, and the results of these steps come a second time. In this case, also rewind the jobs that read the
    results. If the results are on an object store, a reading job ends with an error, and does not read the repeated
    results.
    """
    folder = located(checkpoint)
    found = Checkpoint.open(folder)
    return stream_of(spark, found.folders, found.manifest(), query, {}, options)


def frame_of(spark: SparkSession, name: str, spec: SourceSpec, patience: int) -> DataFrame:
    """Read a stream of a job file that is the results of another job."""
    path, query, options = read_results(name, spec)
    return results_stream(spark, path, query, **options)


def stream_of(
    spark: SparkSession,
    folders: Folders,
    manifest: Manifest,
    query: str,
    declared: Mapping[str, AddQuery],
    options: Mapping[str, str | int],
) -> DataFrame:
    """Read the results of a query that the manifest has, or that is `declared` and begins with the next step."""
    found = committed_results(folders, manifest, query, declared)
    sink = found.sink
    schema = from_arrow_schema(found.columns, prefer_timestamp_ntz=True)
    if not isinstance(storage_at(sink.path), LocalStorage):
        return _from_store(spark, folders.root, query, sink, schema, options)
    if pattern := _GLOB.search(sink.path):  # Spark reads files below such a folder twice, even if it is escaped.
        raise SinkError(
            f"Spark's file source cannot read a folder with {pattern[0]!r} in its path",
            place=sink.path,
            remedy="set the query's sink to a folder whose path has no wildcard",
        )
    sink.open()
    return spark.readStream.schema(schema).options(**options).format(sink.format).load(f"{sink.path}/step=*")


def _from_store(
    spark: SparkSession,
    checkpoint: str,
    query: str,
    sink: FileSink,
    schema: StructType,
    options: Mapping[str, str | int],
) -> DataFrame:
    if unknown := sorted(set(options) - {FILES_A_STEP}):
        raise QueryError(
            f"results on an object store cannot be read with the option {unknown[0]!r}",
            place=f"query {query}",
            remedy=f"use {FILES_A_STEP}, or no option",
        )
    ship(spark.sparkContext)
    spark.dataSource.register(ResultsDataSource)
    where = {"checkpoint": checkpoint, "query": query, "sink": sink.path}
    return spark.readStream.format(FORMAT).schema(schema).options(**where, **options).load()
