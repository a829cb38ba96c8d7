"""`strategy="auto"`: before a step, the chooser's pick takes the place of the word. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from midstream.logical.query import Query, query_of
from midstream.migration.strategy_contract import MigrationRequest, discovered
from midstream.model.errors import StrategyError
from midstream.model.frozen import kept_with
from midstream.model.manifest import Manifest
from midstream.optimizer.chooser import checked, choose
from midstream.optimizer.observe import statistics
from midstream.optimizer.prediction import Situation
from midstream.optimizer.samples.drawn import ChunkSamples
from midstream.optimizer.samples.sample_reading import samples_of
from midstream.optimizer.statistics import Statistics
from midstream.plan.decompose import Task, decompose
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Plan
from midstream.state.chunk_store import ChunkStore
from midstream.units.draft import MigrationStart
from midstream.units.program import observed

AUTO = "auto"
"""The name that stands for the chooser among the strategies."""


def resolve(
    manifest: Manifest, start: MigrationStart, known: Statistics, among: Collection[str] = ()
) -> tuple[MigrationStart, dict[str, Any], list[dict[str, Any]]]:
    """Choose the strategy of a migration that leaves it to the chooser.

    The query must be running; `known` are its live figures; the choice is `among` some strategies, or all. The only
    option is `objective`; those of the chosen strategy stay at their defaults, because they are unknown before the
    choice.

    Returns: the command with the chosen strategy, what that one foresees, and all that were considered, as JSON values.
    """
    unknown = sorted(set(start.options) - {"objective"})
    if unknown:
        raise StrategyError(
            f"{AUTO} has no option {unknown[0]!r}", place=f"query {start.query}", remedy="options: objective"
        )
    objective = start.options.get("objective", "latency")
    checked(objective)
    entry = manifest.queries[start.query]
    query, new = query_of(entry), parse_plan(start.plan, query_of(entry))
    bare = query.plain
    move = MigrationRequest(start.query, entry.plan, new, query.keeps_rows, {}, bare and entry.operator is None)
    refused = {name: reason for name, kind in discovered().items() if (reason := kind.refusal(move)) is not None}
    if among:
        refused |= dict.fromkeys(discovered().keys() - refused.keys() - set(among), "it is not allowed")
    candidates = {name: kind.predict for name, kind in discovered().items() if name not in refused}
    situation = situation_of(manifest, replace(start, options={}), known)
    choice = choose(situation, objective, candidates, refused)
    considered = [candidate.to_json() for candidate in choice.considered]
    return replace(start, strategy=choice.strategy, options={}), choice.prediction.to_json(), considered


def foreseen(manifest: Manifest, start: MigrationStart, known: Statistics) -> dict[str, Any]:
    """Predict the migration by the requested strategy, as its event records it; empty if it predicts nothing."""
    prediction = discovered()[start.strategy].predict(situation_of(manifest, start, known))
    return {} if prediction is None else {"predicted": prediction.to_json()}


def situation_of(manifest: Manifest, start: MigrationStart, known: Statistics) -> Situation:
    """Collect live figures, both plans and the tasks of a requested migration."""
    entry = manifest.queries[start.query]
    query = query_of(entry)
    old, new = parse_plan(entry.plan, query), parse_plan(start.plan, query)
    left = [(parse_plan(one.old, query), one.keeps_old_states) for one in entry.migrations.values()]
    return Situation(known, old, new, tasks_of(query, old, new), start.options, tuple(left))


def live_statistics(manifest: Manifest, query: str, chunks: ChunkStore | None) -> Statistics:
    """Return the live figures of a query, with samples of its rows where the chunks are at hand.

    Right after a migration the counters of the new joins are young and some of its states incomplete: then samples say
    what joins hold.
    """
    seen = observed(manifest, query)
    if chunks is None or manifest.queries[query].nodes is not None:
        return statistics(manifest, seen)
    # What was drawn of a store's chunks is kept with it, so that a chunk is opened once: it changes no figure.
    memory = kept_with(chunks, "_samples", lambda _: ChunkSamples())
    listed = (
        ref.name for lane in manifest.lane_states.values() for state in lane.states.values() for ref in state.chunks
    )
    memory.forget_all_but(frozenset(listed))
    samples = samples_of(manifest, seen, chunks, seed=manifest.seed, memory=memory)
    return statistics(manifest, seen, samples=samples)


def tasks_of(query: Query, old: Plan, new: Plan) -> tuple[Task, ...]:
    """List the tasks that decomposition leaves; none for a difference, which has one plan however it is written."""
    return () if query.has_one_plan else decompose(old, new)
