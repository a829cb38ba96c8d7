"""What stays as it is from step to step of a job until queries or lanes change: how rows are spread, and what runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.model.manifest import QueryEntry
from midstream.pipeline.lane_task import predicates_of
from midstream.spark.exchange import Exchange, Group, row_filters
from midstream.spark.layout import StepLayout
from midstream.step.dealt_rows import counted_streams
from midstream.step.plan_step import StepPlan
from midstream.units.answers import streams_by_level
from midstream.units.program import Program


@dataclass(frozen=True)
class Setting:
    """What stays as it is from step to step until queries or lanes change.

    `exchange` leads to the queries over pushed streams; `above` says by level where those run that read answers.
    """

    key: object
    exchange: Exchange
    above: tuple[Exchange, ...]
    programs: Mapping[str, Program]
    counted: tuple[str, ...]
    needs_watermarks: bool
    is_large: bool
    asked: tuple[str, ...]

    def in_tasks(self, most: int) -> Setting:
        """Return the setting with at most so many tasks for the lanes of queries over pushed streams."""
        if most >= self.exchange.partitions:
            return self
        return replace(self, exchange=replace(self.exchange, partitions=most))

    @property
    def read_above(self) -> frozenset[str]:
        """The streams that queries of higher levels read."""
        return frozenset(s for exchange in self.above for group in exchange.groups for s in group.streams)


def setting_of(plan: StepPlan, layout: StepLayout, parallelism: int, large: bool, known: Setting | None) -> Setting:
    """Make the setting of a step; return the known one where nothing has changed.

    Of a `large` step Spark leaves out rows that pass no query's filters.
    """
    manifest = plan.manifest
    queries = tuple((n, e.sql, e.since, e.group, _nodes(e)) for n, e in sorted(manifest.queries.items()))
    key = (queries, manifest.lanes, tuple(manifest.streams.items()), layout, manifest.sharing, large)
    if known is not None and known.key == key:
        return known
    programs = {group: plan.program(group) for group in plan.groups()}
    nodes = {entry.group: found for entry in manifest.queries.values() if (found := _nodes(entry))}
    exchanges = []
    for level in range(len(streams_by_level(manifest))):
        groups = tuple(
            _group(plan, layout, name, programs[name], large and not level, min(nodes.get(name, 0), parallelism))
            for name in plan.groups_at(level)
        )
        partitions = max(1, min(parallelism, sum(group.lanes for group in groups)))
        exchanges.append(Exchange(layout, groups, partitions))
    asked = predicates_of(manifest)
    setting = Setting(
        key, exchanges[0], tuple(exchanges[1:]), programs, counted_streams(plan), plan.needs_watermarks, large, asked
    )
    # What a task reads Spark has not seen.
    return replace(setting, exchange=setting.exchange.without_filters(setting.read_above | layout.readers.keys()))


def _nodes(entry: QueryEntry) -> int:
    # 0 where the query is not spread.
    return 0 if entry.nodes is None else entry.nodes.reach


def _group(plan: StepPlan, layout: StepLayout, name: str, program: Program, filtered: bool, dealt_to: int) -> Group:
    streams = frozenset(stream for unit in program.units for stream in unit.streams)
    filters = row_filters(program, layout) if filtered else {}
    if dealt_to:
        return Group(name, dealt_to, streams, None, filters)
    (stage,) = program.stages
    return Group(name, plan.lanes(name), streams, stage.lane_key, filters)
