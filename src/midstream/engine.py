"""The embedded engine: the fold in memory, and the shortest way in."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from midstream.checkpoint.folder import load_engine, save_engine
from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.explain import explain
from midstream.language.ddl import parse_ddl
from midstream.language.duration import stream_duration
from midstream.model.codec import encode
from midstream.model.command import Command, operator_json
from midstream.model.errors import InputError, fault_located
from midstream.model.events import EVENTS_KEPT, CommandRefused, Event
from midstream.model.manifest import DEFAULT_SHARING, Manifest
from midstream.model.schema import StreamSchema
from midstream.sharing.discovery import scheme
from midstream.state.store.memory import MemoryStore
from midstream.state.sweep import listed
from midstream.step.admission.outputs import appended
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.base import taken
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale, check_lanes
from midstream.step.commands.reshare import Reshare
from midstream.step.fold import step
from midstream.step.plan_step import plan_step


class Engine:
    """Continuous queries over pushed tables, in this process.

    Every call of `push` is one step. Queries, migrations and drops take effect with the next step; what is wrong with
    them is raised at once as a `MidstreamError`, and nothing has changed then. `sharing` is how queries that join the
    same streams by the same predicates share the work: `auto`, `mem_opt`, `cpu_opt`, `pull_up`, `push_down`, or `off`,
    which gives every query states of its own.

    >>> engine = Engine()
    >>> engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    >>> engine.create_stream("B", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    >>> engine.add_query("pairs", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    >>> rows = pa.table({"k": [1, 2], "ts": pa.array([0, 1], pa.timestamp("us"))})
    >>> engine.push({"A": rows, "B": rows.slice(1)})["pairs"].to_pylist()
    [{'k': 2}]
    """

    def __init__(self, seed: int = 0, sharing: str = DEFAULT_SHARING, lanes: int = 1) -> None:
        scheme(sharing, "Engine")
        check_lanes(lanes)
        self._manifest = Manifest(seed=seed, sharing=sharing, lanes=lanes)
        self._ahead: Manifest | None = None
        self._store = MemoryStore()
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._late: dict[str, pa.Table] = {}
        self._dead: dict[str, pa.Table] = {}

    def create_stream(
        self,
        name: str,
        schema: pa.Schema | str,
        timestamp: str,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
    ) -> None:
        """Declare a stream; `schema` is an Arrow schema or SQL DDL text, durations are text or microseconds."""
        if name in self._manifest.streams:
            raise InputError(f"there is a stream {name!r} already", place="create_stream", remedy="use another name")
        columns = parse_ddl(schema) if isinstance(schema, str) else schema
        idle = None if idle_timeout is None else stream_duration(name, "idle_timeout", idle_timeout)
        stream = StreamSchema(name, columns, timestamp, stream_duration(name, "lateness", lateness), idle)
        self._manifest = replace(self._manifest, streams={**self._manifest.streams, name: stream})
        self._ahead = None

    def add_query(
        self,
        name: str,
        sql: str,
        plan: str | None = None,
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        history: bool = True,
    ) -> None:
        """Begin a query with the next step: its answers are the results whose last row arrives from then on.

        The rows that arrive meet those that running queries hold of the same join, unless `history` is False: then only
        one another. The event `QueryAdded` says what the query sees, and from when its answers are what they would be
        had it run for ever. `operator` names a `UserOperator` on top as `package.module:Class`, made with
        `operator_options`.
        """
        self._command(AddQuery(name, sql, plan, None, operator_json(operator, operator_options), history))

    def change_query(self, name: str, sql: str) -> None:
        """Give a running query another window or filter, or another select list with the same columns.

        It keeps its plan and its state and runs by the new text from the next step on; the event `QueryChanged` says
        from when the answers are exact.
        """
        self._command(ChangeQuery(name, sql))

    def drop_query(self, name: str) -> None:
        """End a query; the next step no longer answers it."""
        self._command(DropQuery(name))

    def migrate(
        self,
        name: str,
        plan: str | None = None,
        strategy: str = "moving_state",
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        together: bool = False,
        **options: Any,
    ) -> None:
        """Carry a query to another plan, to another `UserOperator` on top, or both, beginning with the next step.

        It leaves the plan it shares with other queries; `together` carries the shared plan under all of them.
        """
        above = operator_json(operator, operator_options)
        self._command(Migrate(name, plan or "", strategy, options, above, together))

    def rescale(self, lanes: int) -> None:
        """Spread the state over another number of lanes, beginning with the next step."""
        self._command(Rescale(lanes))

    def reshare(self, sharing: str) -> None:
        """Let queries share by another mode, beginning with the next step; no answer changes.

        Queries that share already go on in their chains; one that began under `off` stays by itself.
        """
        self._command(Reshare(sharing))

    def push(self, tables: Mapping[str, pa.Table] | None = None) -> dict[str, pa.Table]:
        """Do one step: rows in by stream, results out by query, each in order of result time.

        A step that fails fails whole: nothing of it is kept, and the same or other rows can be pushed next. A command
        without which it would not have failed is refused, so that no command stands in the way for good; the others
        wait on. What fails by no fault of the user's is an `InternalError`, which says what to report.
        """
        try:
            with fault_located(lambda: f"step {self._manifest.step + 1}"):
                result = step(self._manifest, tables or {}, self._manifest.pending, self._store)
                late, dead = appended(self._late, result.late), appended(self._dead, result.dead_letters)
            self._manifest, self._ahead, self._late, self._dead = result.manifest, None, late, dead
            self._events.extend(result.events)
        except Exception as error:
            self._refuse_culprits(tables or {}, error)
            raise
        finally:
            self._store.retain(listed(self._manifest))
        return dict(result.results)

    def migration(self, name: str) -> dict[str, Any] | None:
        """The progress of a query's running migration, or None: strategy, phase, what old and new plan serve, end.

        `predicted_end` is in event time, in microseconds; it is None where only row counts or spare time decide it.
        `under_way` has all migrations of the query, oldest first: the newest began while the others ran.
        """
        return self.report().query(name).migration_json()

    def explain(self, name: str, analyze: bool = False, format: str = "text") -> Any:
        """The plan of a query and what serves it; `analyze` adds live counters, `format="json"` gives values."""
        return explain(self._shown(), name, analyze=analyze, format=format)

    def metrics(self) -> dict[str, Any]:
        """Exact counters: state rows and bytes now, comparisons so far, and the same for each query."""
        return self.report().metrics()

    def report(self) -> Report:
        """How the engine stands, as frozen values; the queries that the next step begins are in it."""
        return report(self._shown())

    @property
    def manifest(self) -> Manifest:
        """The state after the last step, as a frozen value."""
        return self._manifest

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in order: the newest `EVENTS_KEPT` events."""
        return tuple(self._events)

    @property
    def late(self) -> Mapping[str, pa.Table]:
        """Per stream the rows that arrived too late, with the `_watermark` they missed."""
        return MappingProxyType(self._late)

    @property
    def dead_letters(self) -> Mapping[str, pa.Table]:
        """Per stream the rows that could not be read, with the `_reason`."""
        return MappingProxyType(self._dead)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the engine to a folder; an engine that was saved there before is replaced."""
        save_engine(path, self._manifest, self._store, self.events, self._late, self._dead)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Engine:
        """The engine that was saved in a folder."""
        engine = cls()
        loaded = load_engine(path, engine._store)
        engine._manifest = loaded.manifest
        engine._events.extend(loaded.events)
        engine._late, engine._dead = dict(loaded.late), dict(loaded.dead_letters)
        return engine

    def _command(self, command: Command) -> None:
        with fault_located(lambda: f"command {command.kind}"):
            self._ahead = taken(self._upcoming(), command)
        self._manifest = replace(self._manifest, pending=(*self._manifest.pending, command))

    def _shown(self) -> Manifest:
        """What is shown: the last step's manifest, or what the commands that wait for the next one make of it."""
        return self._upcoming() if self._manifest.pending else self._manifest

    def _refuse_culprits(self, tables: Mapping[str, pa.Table], error: Exception) -> None:
        """Refuse each waiting command with which the step fails, though it does not without."""
        number, waiting, innocent = self._manifest.step + 1, self._manifest.pending, list[Command]()
        if not waiting or not self._succeeds(tables, ()):
            return
        for command in waiting:
            if self._succeeds(tables, (*innocent, command)):
                innocent.append(command)
            else:
                self._events.append(CommandRefused(number, encode(command), str(error)))
        self._manifest, self._ahead = replace(self._manifest, pending=tuple(innocent)), None

    def _succeeds(self, tables: Mapping[str, pa.Table], commands: Sequence[Command]) -> bool:
        try:
            step(self._manifest, tables, commands, self._store)
        except Exception:
            return False
        return True

    def _upcoming(self) -> Manifest:
        """The manifest as the commands waiting for the next step will leave it, each taken once."""
        if self._ahead is None:
            self._ahead = plan_step(self._manifest, self._manifest.pending).manifest
        return self._ahead
