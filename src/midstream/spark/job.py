"""A job on Spark: streams, queries and sinks, declared once and started on a checkpoint."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.writer import Writer
from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import refuse_taken_name
from midstream.commands.base import taken
from midstream.commands.rescale import check_lanes
from midstream.expr.duration import parse_duration
from midstream.model.errors import CheckpointError, InputError, QueryError
from midstream.model.manifest import DEFAULT_SHARING, SPARK, Manifest
from midstream.model.optimization import OptimizerSettings
from midstream.model.schema import StreamSchema
from midstream.pipeline.carried_log import spark_log
from midstream.pipeline.frames import Rows, static_rows
from midstream.pipeline.outputs import Outputs, dropped_next
from midstream.pipeline.patience import PATIENCE
from midstream.pipeline.reconcile import (
    Declared,
    redeclared,
    refuse_other_host,
    streams_for,
    undeclared,
    with_streams,
)
from midstream.pipeline.spark_log import has_run
from midstream.pipeline.static_tables import set_table, unread
from midstream.plan.notation import parse_plan
from midstream.proposals.settings import settings_of_values
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sinks import Sink, SinkFunction, as_sink
from midstream.spark.feed import Feed
from midstream.spark.job_streams import JobStream, declared_stream, rows_of_frame
from midstream.spark.result_frames import DataFrames
from midstream.spark.running_job import Run
from midstream.spark.session import ship
from midstream.sql.job_specs import QuerySpec
from midstream.sql.parse import parse_query
from midstream.storage.files import FileStore
from midstream.storage.memory_limit import MemoryLimit
from midstream.storage.places import located
from midstream.units.user_operators import check_operator


class Job:
    """Continuous queries over Spark's streams.

    `checkpoint` has the whole state of the job. It is a folder that every machine of the cluster reaches by one path,
    or the URL of an object store (`s3://`, `gs://`, `abfs://`). A job on a checkpoint continues where the last job
    stopped, even if you declare new plans, lanes or queries. `lanes` is the number of partitions of the state. The
    default is the number of tasks that Spark runs at once. `sharing` says how queries with equal joins share work:
    `auto`, `mem_opt`, `cpu_opt`, `pull_up`, `push_down` or `off`. With `off` every query has its own states.

    With `durable` the job publishes a step only when the step's files would survive a power failure. Without `durable`
    each step takes some milliseconds less. But a power failure may then lose the steps of the last seconds, and a sink
    may lose or duplicate rows.

    A step may fail for a reason outside the job, such as a full disk. The job repeats such a step for the duration
    `patience`, and then ends with the error. `patience` is a string such as "1 hour", or microseconds.

    `memory`, such as "4 GB", limits the memory of each Python process that joins rows. Memory-mapped files do not
    count. A step fails with an `InputError` if one of its tasks needs more memory. A worker uses at most half of the
    limit to cache chunks.

    Rows that arrive too late go to `late/<stream>` in the checkpoint, with the watermark that they missed. Rows that
    midstream cannot read as declared go to `dead_letters/<stream>`, with the reason. Both outputs are Parquet files
    with the columns that queries read, in one folder for each step. Dead letters also have each column that arrived
    with a type other than the declared type. Rows that a query cannot evaluate go to `rejected/<query>`, with the
    reason and the columns that the query reads.
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str | os.PathLike[str],
        lanes: int | None = None,
        *,
        sharing: str = DEFAULT_SHARING,
        seed: int = 0,
        durable: bool = True,
        patience: str | int = PATIENCE,
        memory: str | int | None = None,
    ) -> None:
        if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
            raise InputError(
                "the job needs a classic Spark session",
                place="Job",
                remedy="build a session without a remote, or use midstream.spark.session.local_session()",
            )
        if lanes is not None:
            check_lanes(lanes)
        scheme(sharing, "Job")
        self._spark, self._folders, self._lanes = spark, Folders(located(checkpoint), durable), lanes
        self._sharing, self._seed = sharing, seed
        self._patience = parse_duration(patience, what="patience", place="Job")
        self._limit = MemoryLimit.of(memory, "Job")
        self._streams: dict[str, JobStream] = {}
        self._tables: dict[str, pa.Table] = {}
        self._queries: dict[str, AddQuery] = {}
        self._sinks: dict[str, Sink] = {}
        self._dead_letters: dict[str, Sink] = {}
        self._optimizer: dict[str, OptimizerSettings] = {}

    def stream(
        self,
        name: str,
        df: DataFrame,
        timestamp: str,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
        schema: pa.Schema | str | None = None,
        unit: str | None = None,
        max_ahead: str | int | None = None,
        dead_letters: Sink | Mapping[str, Any] | None = None,
    ) -> Job:
        """Declare a stream over any streaming DataFrame.

        `timestamp` names the column of event time. Durations are strings or microseconds. A row may be up to `lateness`
        older than the newest row of its stream; even older rows go to the late output. A stream without rows for
        `idle_timeout` of event time does not delay other streams. `schema` is an Arrow schema or SQL DDL text. Use
        `schema` for types that differ from those of the DataFrame, such as BIGINT for a column of strings. A row with a
        value that does not fit its declared type is a dead letter. Without `schema` the types are those of the
        DataFrame. An integer timestamp needs a `unit`: "s", "ms", "us" or "ns" since 1970. A row is also a dead letter
        if it is more than `max_ahead` newer than every row of earlier steps. The checkpoint keeps the dead letters, and
        the sink `dead_letters` gets a copy.
        """
        declared = declared_stream(name, df, timestamp, lateness, idle_timeout, schema, unit, max_ahead)
        if name in self._streams:
            raise InputError(f"there is already a stream {name!r}", place=f"stream {name}", remedy="use another name")
        refuse_taken_name("stream", name, self._names)
        self._streams[name] = declared
        if dead_letters is not None:
            self._dead_letters[name] = as_sink(dead_letters, "")
        return self

    def table(self, name: str, rows: DataFrame | Rows) -> Job:
        """Declare a static table from a batch DataFrame or other rows.

        The driver keeps the table in memory. Declare the table before the queries that read it. A query names the table
        in FROM, like a stream. A row of a stream joins the version of the table that is current when the row's step
        runs. `Run.table` makes a new version. A job that starts again keeps the table's rows of the last run, unless
        you declare different rows.
        """
        refuse_taken_name("table", name, self._names)
        found = static_rows(name, rows_of_frame(rows, f"table {name}"))
        if found is None:
            raise InputError(
                f"table {name!r} has no columns", place=f"table {name}", remedy="give the table at least one row"
            )
        self._tables[name] = found
        return self

    def query(
        self,
        name: str,
        sql: str,
        plan: str | None = None,
        sink: Sink | SinkFunction | Mapping[str, Any] | None = None,
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        history: bool = True,
        spread: str | None = None,
        nodes: int | str | None = None,
        spread_options: Mapping[str, Any] | None = None,
    ) -> Job:
        """Declare a query over declared streams. Without a sink the results go into the checkpoint.

        If a running query has the same join as the new query, the job already keeps earlier rows for this join. Unless
        `history` is False, the new query also joins these rows.

        `operator`, such as `package.module:Class`, names a `UserOperator` that runs on top of the query. midstream
        makes the operator with `operator_options`. Every worker must be able to import the module. A `spread`, such as
        `psp_d` or `auto`, runs the join on `nodes` nodes. A spread join may have any condition, but needs RANGE
        windows. With `nodes="auto"` the cost model chooses the number of nodes.
        """
        above, over = operator_options or {}, spread_options or {}
        return self._declare(AddQuery(name, sql, plan, None, operator, above, history, spread, nodes, over), sink)

    def declare_query(self, declared: QuerySpec) -> Job:
        """Declare a query from its specification in a job file."""
        return self._declare(AddQuery.of(declared), declared.sink)

    def _declare(self, asked: AddQuery, sink: Sink | SinkFunction | Mapping[str, Any] | None) -> Job:
        name, plan = asked.query, asked.plan
        meant = self._folders.sink(name, sink)
        if name in self._queries:
            raise QueryError(f"there is already a query {name!r}", place=f"query {name}", remedy="use another name")
        tables = {table: unread(table, rows.schema) for table, rows in self._tables.items()}
        added = asked.like(sink=meant.to_json()).allowed()
        manifest = streams_for(added.without_operator(), self._schemas(), self._queries, SPARK, tables)
        query = parse_query(added.statement, manifest.streams, tables=manifest.table_schemas)
        if plan is not None:
            parse_plan(plan, query)
        if added.above is not None:
            check_operator(query, added.above, f"query {name}")
        self._sinks[name] = meant
        if (added.spread or added.nodes or added.spread_options) and name not in manifest.queries:
            taken(manifest, added)
        self._queries[name] = added
        return self

    def optimize(
        self, query: str | None = None, policy: str = "adaptive", mode: str | None = None, **settings: Any
    ) -> Job:
        """Set what the optimizer may do with a query, or with all queries that have no settings of their own.

        `settings` are the settings of `Run.optimize`. The setting `options` is a mapping with the options of the
        policy. A query without a mode has the mode of the job, which is `suggest` unless you set another.
        """
        place = f"query {query}" if query else "optimize"
        mode = mode or self._optimizer.get("", OptimizerSettings()).mode
        return self.declare_optimizer(
            query or "", settings_of_values({"policy": policy, "mode": mode, **settings}, place)
        )

    def declare_optimizer(self, query: str, settings: OptimizerSettings) -> Job:
        """Set the optimizer's settings for a query, or for all queries without settings if `query` is empty."""
        if query and query not in self._queries:
            known = ", ".join(self._queries) or "none"
            raise QueryError(
                f"there is no query {query!r}",
                place="optimize",
                remedy=f"declare the query first; the declared queries are: {known}",
            )
        self._optimizer[query] = settings
        return self

    def start(self, trigger: Mapping[str, Any] | None = None, *, take_over: bool = False) -> Run:
        """Start the job, and become the only writer of its checkpoint.

        `trigger` is a trigger of Spark, such as `{"processingTime": "1 second"}` or `{"availableNow": True}`. If
        another process is the writer and may still run, the call raises a `HeldCheckpointError`. With `take_over` the
        call instead takes the checkpoint from the other process. The other process then changes nothing more, and ends
        with its next step at the latest. Raises a `CheckpointError` if the checkpoint is damaged, belongs to another
        job, or is behind one of its sinks.
        """
        if not self._streams:
            raise InputError(
                "the job has no stream", place="Job", remedy="declare a stream with job.stream(name, df, timestamp=)"
            )
        folders = self._folders
        newest = folders.manifests.latest()
        refuse_other_host(newest, SPARK, folders.root)
        if newest is None and not folders.is_remote and has_run(folders.spark):
            raise CheckpointError(
                "the checkpoint has a log of Spark, but no manifest",
                place=folders.root,
                remedy="restore the folder `manifests`, or use a new checkpoint",
            )
        writer = Writer.take(folders.manifests, take_over=take_over)
        try:
            return self._start(writer, dict(trigger or {}))
        except BaseException as error:
            writer.release(error)
            raise

    def _start(self, writer: Writer, trigger: Mapping[str, Any]) -> Run:
        folders = self._folders
        newest = folders.manifests.latest()
        own = () if newest is None else undeclared(newest, self._queries)
        outputs = Outputs(
            folders, self._sinks_needed(newest), DataFrames(self._spark), own=own, dead_letters=self._dead_letters
        )
        manifest = self._first()
        if newest is not None:
            manifest = with_streams(newest, self._schemas(), folders.root, lambda one: dropped_next(one, folders))
        outputs.open(manifest)
        outputs.check(manifest)
        log = spark_log(folders, writer.claim.number)
        log.begin(manifest)
        manifest = writer.begin(manifest)
        outputs.give_up_later(manifest)
        writer.check()
        if log.has_committed(manifest.step):  # Otherwise Spark does the batch again, which commits what is staged.
            outputs.clear(manifest)
        log.forget_former()
        ship(self._spark.sparkContext)
        chunks, last = FileStore(folders.chunks), manifest.published.declared.tables
        tables = {
            name: set_table(name, rows, manifest.tables, chunks, manifest.step, last.get(name, ""))
            for name, rows in self._tables.items()
        }
        declared = Declared(self._lanes, self._queries, self._sharing, self._optimizer, tables, self._limit)
        streams = tuple(self._streams[name] for name in manifest.pushed_streams)
        feed = Feed(self._spark, streams, log, trigger, f"midstream {folders.root} #{writer.claim.number}")
        return Run(feed, writer, manifest, declared, outputs, self._patience)

    def _sinks_needed(self, newest: Manifest | None) -> dict[str, Sink]:
        # A query that a command has dropped, and that stays so, needs no sink.
        return {
            name: sink
            for name, sink in self._sinks.items()
            if newest is None or name in newest.queries or redeclared(newest, self._queries[name])
        }

    @property
    def _names(self) -> Mapping[str, Iterable[str]]:
        return {"query": self._queries, "stream": self._streams, "table": self._tables}

    def _schemas(self) -> dict[str, StreamSchema]:
        return {name: stream.schema for name, stream in self._streams.items()}

    def _first(self) -> Manifest:
        lanes = self._lanes or self._spark.sparkContext.defaultParallelism
        return Manifest(secrets.token_hex(8), -1, self._seed, self._sharing, lanes, self._schemas())
