"""The one report of how a job stands, from which every face is made: engine, run, command line. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from midstream.checkpoint.report_values import (
    ChainReport,
    LaneReport,
    LanesReport,
    MigrationReport,
    OptimizerReport,
    QueryReport,
    RefusedReport,
    Report,
    StateReport,
    StreamReport,
    TableReport,
)
from midstream.checkpoint.running_states import lanes_of_group, rows_by_slice, running_boxes, running_units, state_names
from midstream.logical.query import query_of
from midstream.model.codec import decode
from midstream.model.ids import StateId
from midstream.model.manifest import (
    ChunkRef,
    Manifest,
    MigrationRecord,
    QueryEntry,
    StateListing,
    StreamProgress,
    living_rows,
)
from midstream.model.words import rough_span_text, time_text
from midstream.operators.user_operator import OperatorSpec
from midstream.optimizer.decayed_mean import DecayedMean
from midstream.proposals.plan_group import PlanGroup, plan_groups
from midstream.ring.ring_members import mates_of
from midstream.runtime.lane_key import is_single
from midstream.runtime.watermark import BEGINNING, watermark, watermarks
from midstream.step.plan_step import lanes_of
from midstream.units.answers import readers
from midstream.units.chain_unit import ChainUnit
from midstream.units.unit import Unit

_NAMED = frozenset({"phase", "progress", "old_serves", "new_serves", "predicted_end"})
"""The figures of a strategy that are fields of `MigrationReport`."""


def report(manifest: Manifest) -> Report:
    """Report how a job stands by its manifest.

    Everything that is shown of a job, anywhere, is read here, so that no two faces can differ. It needs no store, no
    running job and no Spark.

    >>> report(Manifest(step=3, lanes=2)).metrics()["state_rows"]
    0
    """
    units = running_units(manifest)
    migrations = [one for unit in units for one in _migrations(manifest, unit)]
    optimizers = {name: _optimizer(one) for one in plan_groups(manifest) for name in one.queries}
    queries = {name: query for unit in units for name, query in _queries(manifest, unit, optimizers).items()}
    chains = {unit.name: unit for unit in units if isinstance(unit, ChainUnit)}
    whole = _Held(lane.states.values() for lane in manifest.lane_states.values())
    held = _held_back(manifest)
    return Report(
        job=manifest.job,
        step=manifest.step,
        sharing=manifest.sharing,
        lanes=manifest.lanes,
        counters=manifest.totals,
        operators=manifest.operators,
        lane_review=lanes_report(manifest),
        state_rows=sum(lane.rows for lane in manifest.lane_states.values()),
        state_bytes=whole.bytes,
        chunks=whole.chunks,
        streams={name: _stream(manifest, name, held.get(name, ())) for name in manifest.streams},
        tables={
            name: TableReport(name, table.version, table.chunk.rows, table.chunk.bytes, table.since)
            for name, table in manifest.tables.items()
        },
        queries={name: queries[name] for name in manifest.queries},
        refused={name: RefusedReport(name, one.sql, one.step, one.reason) for name, one in manifest.refused.items()},
        chains={name: _chain(manifest, name, chains.get(name), queries) for name in manifest.chains},
        migrations=tuple(sorted(migrations, key=lambda one: one.begun)),
        states=tuple(_states(manifest)),
        by_lane={str(name): _lane(str(name), lane.states) for name, lane in manifest.lane_states.items()},
        last_command=manifest.last_command,
        pending=manifest.pending,
    )


def lanes_report(manifest: Manifest) -> LanesReport:
    """Report the number of lanes and what the optimizer says of it."""
    kept, load = manifest.lane_optimization, manifest.lane_optimization.load
    took = DecayedMean(load.took).value if load.took else None
    mode = manifest.optimizer.lanes_mode
    return LanesReport(manifest.lanes, mode, kept.decision, kept.reason, kept.proposal, took, load.interval)


class _Held:
    """The chunks of listings, each once."""

    def __init__(self, listings: Iterable[Iterable[StateListing]]) -> None:
        found: dict[str, ChunkRef] = {ref.name: ref for some in listings for one in some for ref in one.chunks}
        self.chunks, self.bytes = len(found), sum(ref.bytes for ref in found.values())


def _held_back(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    # By stream, the queries that wait for it alone because it is silent.
    marks, found = watermarks(manifest.streams, manifest.progress), dict[str, tuple[str, ...]]()
    clock = _clock(manifest)
    silent = {name for name in marks if _is_silent(manifest.progress.get(name), clock)}
    for name, entry in manifest.queries.items():
        read = {*query_of(entry).children}
        slowest = min(read, key=lambda stream: (marks[stream], stream))
        behind = slowest in silent and all(marks[slowest] < marks[other] for other in read - {slowest})
        if behind and len(read) > 1 and not entry.part:
            found[slowest] = (*found.get(slowest, ()), name)
    return found


def _since(manifest: Manifest, name: str, mark: int | None) -> str:
    progress = manifest.progress.get(name, StreamProgress())
    if mark is None or progress.greatest is None:
        return "it never brought a row"
    behind = rough_span_text((_clock(manifest) - progress.greatest) / 1e6)
    return f"{behind} behind, no row since event time {time_text(progress.spoke_at)}"


def _clock(manifest: Manifest) -> int:
    return max((one.greatest for one in manifest.progress.values() if one.greatest is not None), default=BEGINNING)


def _is_silent(progress: StreamProgress | None, clock: int) -> bool:
    never = progress is None or progress.greatest is None
    return never or (progress is not None and progress.spoke_at is not None and progress.spoke_at < clock)


def _stream(manifest: Manifest, name: str, held: tuple[str, ...]) -> StreamReport:
    progress = manifest.progress.get(name, StreamProgress())
    mark = watermark(manifest.streams[name], progress)
    since = _since(manifest, name, mark) if held else ""
    return StreamReport(name, progress.rows, progress.late, progress.rejected, progress.greatest, mark, held, since)


def _migrations(manifest: Manifest, unit: Unit) -> tuple[MigrationReport, ...]:
    # Those of a chain are shown by each of its queries, whichever was named; oldest first.
    records = [(name, m, record) for name in unit.queries for m, record in manifest.queries[name].migrations.items()]
    found = (_migration(name, unit.queries, mark, record) for name, mark, record in records)
    return tuple(sorted(found, key=lambda one: one.begun))


def _migration(query: str, queries: tuple[str, ...], mark: str, record: MigrationRecord) -> MigrationReport:
    named = {name: value for name, value in record.figures.items() if name in _NAMED}
    figures = {name: value for name, value in record.figures.items() if name not in _NAMED}
    return MigrationReport(
        query, queries, mark, record.strategy, record.old, record.plan, record.begun, record.comparisons,
        figures=figures, detail=record.detail, **named,
    )  # fmt: skip


def _optimizer(one: PlanGroup) -> OptimizerReport:
    settings, kept = one.settings, one.kept
    return OptimizerReport(
        settings.mode, settings.policy, one.pinned, kept.decision, kept.reason, kept.reviewed_in,
        kept.proposal, kept.foreseen, kept.real,
    )  # fmt: skip


def _queries(manifest: Manifest, unit: Unit, optimizers: Mapping[str, OptimizerReport]) -> dict[str, QueryReport]:
    # What the queries of a unit stand on is looked at once.
    ids, migrations = state_names(unit, running_boxes(manifest, unit)).keys(), _migrations(manifest, unit)
    lanes = lanes_of_group(manifest, unit.group).values()
    listed = [{id: listing for id, listing in lane.states.items() if id in ids} for lane in lanes]
    rows, held = sum(map(living_rows, listed)), _Held(states.values() for states in listed)
    found = {}
    for name in unit.queries:
        entry, mates = manifest.queries[name], mates_of(manifest, name)
        found[name] = QueryReport(
            name=name,
            sql=entry.sql,
            plan=entry.plan,
            since=entry.since,
            joined=entry.entered,
            sees=entry.sees,
            from_step=entry.from_step,
            exact_from=entry.exact_from,
            lanes=entry.nodes.nodes if entry.nodes is not None else lanes_of(entry.group, manifest.lanes),
            spread=_spread(entry, mates),
            operator=None if entry.operator is None else decode(OperatorSpec, entry.operator).describe(),
            sink=dict(entry.sink or {}),
            chain=entry.chain if entry.shares else None,
            counters=entry.counters,
            state_rows=rows,
            state_bytes=held.bytes,
            states=tuple(sorted(ids)),
            migrations=migrations,
            optimizer=optimizers[name],
            nodes=entry.nodes,
            nodes_with=tuple(mates),
            rejected=entry.rejected,
            part_of=_part_of(manifest, name) if entry.part else (),
        )
    return found


def _spread(entry: QueryEntry, mates: Sequence[str]) -> str:
    if entry.nodes is not None:
        shared = f", shared with {', '.join(map(repr, mates))}" if mates else ""
        return f"spread over nodes by {entry.nodes.scheme}{shared}"
    if entry.operator is not None:
        return "a user operator is on top"
    return "no common key" if is_single(entry.group) else "by the common key"


def _chain(manifest: Manifest, name: str, unit: Unit | None, queries: Mapping[str, QueryReport]) -> ChainReport:
    chain, members = manifest.chains[name], [query for query in queries.values() if query.chain == name]
    rows = rows_by_slice(manifest, unit, running_boxes(manifest, unit)) if isinstance(unit, ChainUnit) else {}
    size = (members[0].state_rows, members[0].state_bytes) if members else (0, 0)
    names = tuple(sorted(query.name for query in members))
    return ChainReport(name, chain.plan, names, max(len(chain.cuts), 1), chain.cuts, rows, *size)


def _states(manifest: Manifest) -> list[StateReport]:
    listings: dict[tuple[str, StateId], list[StateListing]] = {}
    for name, lane in manifest.lane_states.items():
        for id, listing in lane.states.items():
            listings.setdefault((name.group, id), []).append(listing)
    found = []
    for (group, id), listed in sorted(listings.items()):
        held = _Held([listed])
        found.append(StateReport(group, id, sum(one.live for one in listed), held.chunks, held.bytes))
    return found


def _lane(name: str, states: Mapping[StateId, StateListing]) -> LaneReport:
    held = _Held([states.values()])
    return LaneReport(name, living_rows(states), held.chunks, held.bytes)


def _part_of(manifest: Manifest, name: str) -> tuple[str, ...]:
    # A part may be read by parts: what counts are the queries of a user at the end, or by which it is read.
    found = set[str]()
    for reader in readers(manifest, name):
        found |= {reader} if not manifest.queries[reader].part else set(_part_of(manifest, reader))
    return tuple(sorted(found))
