"""How a job stands, as frozen values, each with its JSON form. Times are event times, in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from typing_extensions import override

from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.counters import Counters
from midstream.model.errors import QueryError
from midstream.model.html import html_fields, html_table
from midstream.model.ids import CounterKey, OperatorId
from midstream.model.lane_choice import LaneProposal
from midstream.model.node_spread import NodeSpread, NodeWork, RouteWork, SourceRows, SourceSlices
from midstream.model.optimization import OptimizerSettings, Proposal
from midstream.model.words import counted, time_text


@dataclass(frozen=True)
class ReportValue:
    """A frozen value of a report."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {own.name: _json(getattr(self, own.name)) for own in fields(self)}

    def _repr_html_(self) -> str:
        return html_fields("", self.to_json())


@dataclass(frozen=True)
class StreamReport(ReportValue):
    """The rows that have arrived of a stream; `watermark` is the least event time that it may still bring.

    `holds_back` are the queries that wait for it alone while it brings no row; `since` says by how much it is behind,
    and since when it is silent.
    """

    name: str
    rows: int
    late: int
    rejected: int
    greatest: int | None
    watermark: int | None
    holds_back: tuple[str, ...] = ()
    since: str = ""


@dataclass(frozen=True)
class TableReport(ReportValue):
    """The version of a static table that stands, how many rows it has, and since which step."""

    name: str
    version: int
    rows: int
    bytes: int
    since: int


@dataclass(frozen=True)
class MigrationReport(ReportValue):
    """A migration under way: of `query`, and of all the others in `queries` that run by the same plan.

    It began in step `begun` and has cost `comparisons` so far. `phase` says what it is doing, `progress` is from
    0 to 1; where it stands differently in different lanes, both are those of the slowest. `predicted_end` is
    None where not event time decides it but counts of rows, or spare time. `figures` are further ones that its strategy
    gives; `detail` is what was predicted when it began.
    """

    query: str
    queries: tuple[str, ...]
    mark: str
    strategy: str
    old: str
    plan: str
    begun: int
    comparisons: int
    phase: str | None = None
    progress: float = 0.0
    old_serves: str | None = None
    new_serves: str | None = None
    predicted_end: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)

    @override
    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, the strategy's own figures among them."""
        value = super().to_json()
        return {**value.pop("figures"), **value}


@dataclass(frozen=True)
class OptimizerReport(ReportValue):
    """What the optimizer may do with a query, and what it last did: a decision, for a reason, and its proposal.

    That was in the step `reviewed_in`; asked now it may decide otherwise.

    `foreseen` and `real` are what the plan was to cost and did, in nanoseconds of work for a second of event time.
    """

    mode: str
    policy: str
    pinned: bool
    decision: str
    reason: str
    reviewed_in: int
    proposal: Proposal | None
    foreseen: float | None
    real: float | None

    @property
    def waits(self) -> bool:
        """Whether a plan is proposed that nobody has answered."""
        return self.proposal is not None and self.proposal.state == "waits"


@dataclass(frozen=True)
class LanesReport(ReportValue):
    """What the optimizer may do with the number of lanes, and what it last decided, for a reason, and its proposal.

    `took` is the decayed mean of the seconds that steps take, `interval` that of the trigger in seconds, where it has
    one; None where nothing was measured.
    """

    lanes: int
    mode: str
    decision: str
    reason: str
    proposal: LaneProposal | None
    took: float | None
    interval: float | None

    @property
    def waits(self) -> bool:
        """Whether a number is proposed that nobody has answered."""
        return self.proposal is not None and self.proposal.state == "waits"


@dataclass(frozen=True)
class QueryReport(ReportValue):
    """A running query: its text, the plan that runs it, what it has done, the states it stands on.

    Queries of a chain stand on the same states, and each has all their rows in `state_rows`. `migrations` are those
    under way, oldest first: a newer one began while the others ran. `sees`, `from_step` and `exact_from` are as in
    `QueryAdded`. `nodes` is there where the query is spread over nodes, and says what each of them did; `nodes_with`
    are the queries that share them. `rejected` counts its dead letters. `part_of` names the queries of a user of which
    this one is a part, such as a subquery that aggregates; it is empty for those that the user wrote.
    """

    name: str
    sql: str
    plan: str
    since: int
    joined: int
    sees: str | int
    from_step: int
    exact_from: int | None
    lanes: int
    spread: str
    operator: str | None
    sink: Mapping[str, Any]
    chain: str | None
    counters: Counters
    state_rows: int
    state_bytes: int
    states: tuple[str, ...]
    migrations: tuple[MigrationReport, ...]
    optimizer: OptimizerReport
    nodes: NodeSpread | None = None
    nodes_with: tuple[str, ...] = ()
    rejected: int = 0
    part_of: tuple[str, ...] = ()

    def __repr__(self) -> str:
        moving = "" if self.migration is None else f", moving to {self.migration.plan} by {self.migration.strategy}"
        done = f"{counted(self.counters.rows_out, 'row')} out, {counted(self.state_rows, 'row')} in state"
        return f"<Query {self.name} since step {self.since:,}, by {self.plan}: {done}{moving}>"

    @property
    def migration(self) -> MigrationReport | None:
        """The newest migration under way."""
        return self.migrations[-1] if self.migrations else None

    def migration_json(self) -> dict[str, Any] | None:
        """Return the newest migration as JSON values, with all of them as `under_way`; None if none is under way."""
        under_way = [migration.to_json() for migration in self.migrations]
        # Under a query's name a migration is that query's, whichever of its chain was named when it began.
        return {**under_way[-1], "query": self.name, "under_way": under_way} if under_way else None

    @override
    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values, with `migration` instead of `migrations`."""
        value = super().to_json()
        del value["migrations"]
        return {**value, "migration": self.migration_json()}


@dataclass(frozen=True)
class RefusedReport(ReportValue):
    """A query that was to begin with a step and does not run, for a reason, until it is dropped or declared rightly."""

    name: str
    sql: str
    step: int
    reason: str


@dataclass(frozen=True)
class ChainReport(ReportValue):
    """Queries that run by one plan over shared states.

    `cuts` are the ages between its slices, the last one's end included; `rows` are by label those alive in each slice.
    """

    name: str
    plan: str
    queries: tuple[str, ...]
    slices: int
    cuts: tuple[int, ...]
    rows: Mapping[str, tuple[int, ...]]
    state_rows: int
    state_bytes: int


@dataclass(frozen=True)
class StateReport(ReportValue):
    """A state of a lane group, over all its lanes: the rows alive in it, its chunks and their bytes."""

    group: str
    id: str
    rows: int
    chunks: int
    bytes: int


@dataclass(frozen=True)
class LaneReport(ReportValue):
    """What a lane (a partition of the rows) holds; a state under several indexes counts once."""

    name: str
    rows: int
    chunks: int
    bytes: int


@dataclass(frozen=True)
class Report(ReportValue):
    """How a job stands after a step.

    A state under several indexes counts once in `state_rows`, and a chunk that several states list once in `chunks` and
    `state_bytes`: so totals may be less than the sums over `states`. `last_command` is the number of the last command
    taken from the job's log; `pending` are those that an engine, which has no log, holds for its next step.
    `operators` has the counters of each operator of a lane group.
    """

    job: str
    step: int
    sharing: str
    lanes: int
    counters: Counters
    operators: Mapping[CounterKey, Counters]
    lane_review: LanesReport
    state_rows: int
    state_bytes: int
    chunks: int
    streams: Mapping[str, StreamReport]
    tables: Mapping[str, TableReport]
    queries: Mapping[str, QueryReport]
    refused: Mapping[str, RefusedReport]
    chains: Mapping[str, ChainReport]
    migrations: tuple[MigrationReport, ...]
    states: tuple[StateReport, ...]
    by_lane: Mapping[str, LaneReport]
    last_command: int
    pending: tuple[Command, ...]

    def __repr__(self) -> str:
        rows = f"{counted(self.state_rows, 'row')} in state"
        names = f"{counted(len(self.queries), 'query')} over {counted(len(self.streams), 'stream')}"
        return (
            f"<Report of step {self.step:,}: {names}, {rows}, {counted(len(self.migrations), 'migration')} under way>"
        )

    def _repr_html_(self) -> str:
        head = {"step": self.step, "lanes": self.lanes, "sharing": self.sharing, "rows in state": self.state_rows}
        streams = [
            (one.name, one.rows, one.late, one.rejected, time_text(one.greatest), time_text(one.watermark))
            for one in self.streams.values()
        ]
        queries = [
            (one.name, one.since, one.plan, one.counters.rows_out, one.counters.comparisons, one.state_rows)
            for one in self.queries.values()
        ]
        moving = [
            (", ".join(one.queries), one.strategy, one.plan, one.begun, one.phase, f"{one.progress:.0%}")
            for one in self.migrations
        ]
        return (
            html_fields("", head)
            + html_table("streams", ("stream", "rows", "late", "dead", "newest event", "watermark"), streams)
            + html_table("queries", ("query", "since step", "plan", "rows out", "comparisons", "state rows"), queries)
            + html_table("migrations", ("queries", "strategy", "to plan", "since step", "phase", "done"), moving)
        )

    @property
    def asked(self) -> tuple[QueryReport, ...]:
        """The queries that a user wrote, without parts of them."""
        return tuple(query for query in self.queries.values() if not query.part_of)

    def parts(self, name: str) -> tuple[QueryReport, ...]:
        """List the queries that run as parts of a query; a part of several is listed with the first."""
        return tuple(query for query in self.queries.values() if query.part_of[:1] == (name,))

    def query(self, name: str) -> QueryReport:
        """Return the report of a running query; raises `QueryError` where there is none of this name."""
        if not isinstance(name, str) or name not in self.queries:
            known = ", ".join(sorted(one.name for one in self.asked)) or "none is running"
            raise QueryError(f"there is no query {name!r}", place=f"{name}", remedy=f"use one of: {known}")
        return self.queries[name]

    def counted(self, group: str, operator: OperatorId) -> Counters:
        """Return what an operator has counted in all lanes of a lane group."""
        return self.operators.get(CounterKey(group, operator), Counters())

    def metrics(self) -> dict[str, Any]:
        """Return the exact counters of the job and of each query, and the size of the state now, as JSON values."""
        queries = {
            name: {**vars(query.counters), "state_rows": query.state_rows, "state_bytes": query.state_bytes}
            for name, query in self.queries.items()
        }
        whole = {**vars(self.counters), "state_rows": self.state_rows, "state_bytes": self.state_bytes}
        return {**whole, "queries": queries}


_IN_FULL = (
    OptimizerSettings, Proposal, LaneProposal, NodeSpread, NodeWork, RouteWork, SourceRows, SourceSlices,
)  # fmt: skip


def _json(value: Any) -> Any:
    match value:
        case ReportValue():
            return value.to_json()
        case Command():
            return encode(value)
        case _ if isinstance(value, _IN_FULL):
            # Defaults included, which `encode` leaves out: a reader of a report has nowhere to look them up.
            return {own.name: _json(getattr(value, own.name)) for own in fields(value)}
        case Counters():
            return dict(vars(value))
        case Mapping():
            return {str(name): _json(item) for name, item in value.items()}
        case list() | tuple():
            return [_json(item) for item in value]
    return value
