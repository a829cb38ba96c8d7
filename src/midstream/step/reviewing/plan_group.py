"""What is reviewed as one: a query that runs by itself, or all the queries of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.language.parse import parsed
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.model.optimization import MODES, Optimization, OptimizerSettings
from midstream.sharing.chains import check_whole, members


@dataclass(frozen=True)
class PlanGroup:
    """Queries that run by one plan: `lead` is the first of them by name, whose aliases the plan is written in.

    `settings` are the lead's, but for the mode: the most cautious one of them all counts. `kept` is what is kept of the
    lead.
    """

    lead: str
    queries: tuple[str, ...]
    settings: OptimizerSettings
    kept: Optimization
    pinned: bool

    @property
    def is_reviewed(self) -> bool:
        """Whether the plan may be looked at: nobody has switched that off or pinned it."""
        return self.settings.mode != "off" and not self.pinned


def settings_of(manifest: Manifest, query: str) -> OptimizerSettings:
    """What the optimizer may do with a query: by its own settings, else the job's."""
    kept = manifest.optimizations.get(query)
    return manifest.optimizer if kept is None or kept.settings is None else kept.settings


def plan_group(manifest: Manifest, query: str) -> PlanGroup:
    """The queries that move with a query, itself included."""
    entry = manifest.queries[query]
    names = tuple(members(manifest, entry.chain)) if entry.shares else (query,)
    return _of(manifest, names)


def plan_groups(manifest: Manifest) -> list[PlanGroup]:
    """All queries of a job, by what moves together, in order of the leads' names."""
    chains: dict[str, list[str]] = {}
    for name in sorted(manifest.queries):
        entry = manifest.queries[name]
        chains.setdefault(f"chain {entry.chain}" if entry.shares else f"query {name}", []).append(name)
    return [_of(manifest, tuple(names)) for names in chains.values()]


def _of(manifest: Manifest, names: tuple[str, ...]) -> PlanGroup:
    own = settings_of(manifest, names[0])
    mode = min((settings_of(manifest, name).mode for name in names), key=MODES.index)
    kept: Mapping[str, Optimization] = manifest.optimizations
    pinned = any(name in kept and kept[name].pinned for name in names)
    return PlanGroup(names[0], names, replace(own, mode=mode), kept.get(names[0], Optimization()), pinned)


def without_choice(manifest: Manifest, query: str) -> str:
    """Why there is nothing to choose for a query; empty where there is."""
    entry = manifest.queries[query]
    bound = parsed(manifest, entry.sql)
    if len(bound.sources) < 3:
        return "it joins fewer than three streams, and so has one plan"
    if bound.difference is not None:
        return "a difference has one plan"
    if entry.operator is not None:
        return "a user's operator is on top, whose cost nobody knows"
    try:
        check_whole(manifest, query)
    except MidstreamError as error:
        return error.message
    return ""
