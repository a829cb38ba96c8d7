"""What is reviewed as one: a query that runs by itself, or all the queries of a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from midstream.expr.functions import asks_user
from midstream.logical.query import Query, query_of
from midstream.migration.strategy_contract import discovered
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.model.optimization import MODES, Optimization, OptimizerSettings
from midstream.optimizer.charts.chart_policy import ChartPolicy
from midstream.optimizer.policies.policy_contract import policies
from midstream.plan.decompose import same_shape
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Plan
from midstream.sharing.chains import check_whole, members
from midstream.sharing.shape import canonical_plan, own_plan
from midstream.units.arrangement import known_arrangement


@dataclass(frozen=True)
class GroupSettings:
    """The settings of queries that move together, and, where they leave nothing to choose, why; then the plan stays."""

    settings: OptimizerSettings
    conflict: str = ""


def settings_of(manifest: Manifest, query: str) -> OptimizerSettings:
    """Return the settings that count for a query: its own, else the job's."""
    kept = manifest.optimizations.get(query)
    return manifest.optimizer if kept is None or kept.settings is None else kept.settings


def group_settings(manifest: Manifest, queries: Sequence[str]) -> GroupSettings:
    """Merge the settings of queries that move together: the first query's, as far as the others' allow them.

    The most cautious mode counts, each one's quiet hours, the shortest horizon that is given, and of plans and
    strategies those that all allow. The plans are in the aliases of the first query.
    """
    each = [settings_of(manifest, name) for name in queries]
    if len(each) == 1 or all(one == each[0] and not one.allow for one in each):
        return GroupSettings(each[0])
    merged = replace(
        each[0],
        mode=min((one.mode for one in each), key=MODES.index),
        quiet=tuple(dict.fromkeys(hours for one in each for hours in one.quiet)),
        horizon=min((one.horizon for one in each if one.horizon is not None), default=None),
    )
    try:
        plans, strategies = _allowed_by_all(manifest, queries)
    except MidstreamError as error:
        return GroupSettings(replace(merged, allow=()), f"nothing is left to choose: {error.message}")
    conflict = ""
    for what, left in (("plan", plans), ("strategy", strategies)):
        if left is not None and not left:
            conflict = f"nothing is left to choose: no {what} is allowed by all of {', '.join(queries)}"
    return GroupSettings(replace(merged, allow=(*(plans or ()), *(strategies or ()))), conflict)


def plan_of_lead(manifest: Manifest, query: str, lead: str, plan: str) -> str:
    """Translate a plan of one query of a chain into the aliases of another."""
    own = parse_plan(plan, query_of(manifest.queries[query])).notation()
    if query == lead:
        return own
    canonical = canonical_plan(query_of(manifest.queries[query]), own)
    return own_plan(query_of(manifest.queries[lead]), canonical)


def split_allowed(allow: tuple[str, ...], query: Query) -> tuple[tuple[Plan, ...], tuple[str, ...]]:
    """Split a list of what is allowed into plans and strategies; raises `PlanError` for what is neither."""
    strategies = tuple(one for one in allow if one in discovered())
    plans = tuple(parse_plan(one, query) for one in allow if one not in discovered())
    return plans, strategies


def _allowed_by_all(manifest: Manifest, queries: Sequence[str]) -> tuple[list[str] | None, list[str] | None]:
    # None where any will do.
    lead, bound = queries[0], query_of(manifest.queries[queries[0]])
    plans: list[Plan] | None = None
    strategies: list[str] | None = None
    for name in queries:
        allow = settings_of(manifest, name).allow
        listed = [one for one in allow if one in discovered()]
        trees = [parse_plan(plan_of_lead(manifest, name, lead, one), bound) for one in allow if one not in discovered()]
        if trees:
            plans = trees if plans is None else [one for one in plans if any(same_shape(one, tree) for tree in trees)]
        if listed:
            strategies = listed if strategies is None else [one for one in strategies if one in listed]
    return None if plans is None else [one.notation() for one in plans], strategies


DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class PlanGroup:
    """Queries that run by one plan: `lead` is the first of them by name, whose aliases the plan is written in.

    `settings` are the lead's, as far as those of the others allow them; where they leave nothing to choose, `conflict`
    says why. `kept` is what is kept of the lead.
    """

    lead: str
    queries: tuple[str, ...]
    settings: OptimizerSettings
    kept: Optimization
    pinned: bool
    conflict: str = ""

    @property
    def is_reviewed(self) -> bool:
        """Whether the plan may be looked at: nobody has switched that off or pinned it."""
        return self.settings.mode != "off" and not self.pinned


def plan_group(manifest: Manifest, query: str) -> PlanGroup:
    """Return the queries that move with a query, itself included."""
    entry = manifest.queries[query]
    names = tuple(members(manifest, entry.chain)) if entry.shares else (query,)
    return group_of(manifest, names)


def plan_groups(manifest: Manifest) -> list[PlanGroup]:
    """Group all queries of a job by what moves together, in order of the leads' names."""
    return [group_of(manifest, names) for names in moving_together(manifest)]


def moving_together(manifest: Manifest) -> list[tuple[str, ...]]:
    """Group the names of all queries of a job by what moves together. The leads come first, and are in order."""
    found: dict[tuple[bool, str], list[str]] = {}
    for name in sorted(manifest.queries):
        entry = manifest.queries[name]
        found.setdefault((True, entry.chain) if entry.shares else (False, name), []).append(name)
    return [tuple(names) for names in found.values()]


def group_of(manifest: Manifest, names: tuple[str, ...]) -> PlanGroup:
    """Make the group as which queries that move together are reviewed."""
    allowed = group_settings(manifest, names)
    kept: Mapping[str, Optimization] = manifest.optimizations
    pinned = any(name in kept and kept[name].pinned for name in names)
    lead = names[0]
    return PlanGroup(lead, names, allowed.settings, kept.get(lead) or Optimization(), pinned, allowed.conflict)


def without_choice(manifest: Manifest, query: str) -> str:
    """Explain why there is nothing to choose for a query; empty where there is."""
    entry = manifest.queries[query]
    bound = query_of(entry)
    if len(bound.sources) < 3:
        return "it joins fewer than three streams, and so has one plan"
    if bound.has_one_plan:
        return "a difference has one plan"
    if entry.nodes is not None:
        return "it is spread over nodes, which keep base rows only"
    if entry.operator is not None:
        return "the cost of the query's user operator is unknown"
    try:
        check_whole(manifest, query)
    except MidstreamError as error:
        return error.message
    return ""


def groups_with_choice(manifest: Manifest) -> Sequence[tuple[str, ...]]:
    """Return the queries that move together, for each group that has more than one plan; found once for a program."""
    known = known_arrangement(manifest)
    if known is not None and known.choosing:
        return known.choosing[0]
    found = [names for names in moving_together(manifest) if not without_choice(manifest, names[0])]
    if known is not None:
        known.choosing.append(found)
    return found


def has_conditions_to_order(manifest: Manifest, query: str) -> bool:
    """Return whether a chart can order the conditions of a query: over one or two streams, with rows of its own."""
    entry = manifest.queries[query]
    bound = query_of(entry)
    if len(bound.sources) > 2 or entry.nodes is not None or (entry.shares and len(members(manifest, entry.chain)) > 1):
        return False
    own = [alias for alias, one in bound.selections if not asks_user(one)]
    return any(own.count(source.alias) + own.count("") > 1 for source in bound.sources)


def queries_with_conditions(manifest: Manifest) -> Sequence[str]:
    """List the queries whose conditions a chart can order, or has ordered; found once for a program."""
    known = known_arrangement(manifest)
    if known is not None and known.ordering:
        return known.ordering[0]
    found = [name for name, one in manifest.queries.items() if one.order or has_conditions_to_order(manifest, name)]
    if known is not None:
        known.ordering.append(found)
    return found


def is_chart_policy(name: str) -> bool:
    """Return whether a policy decides by charts."""
    return isinstance(policies().get(name), ChartPolicy)


def query_time(manifest: Manifest, query: str) -> int | None:
    """Return the greatest event time of the streams that a query reads; others do not matter to it."""
    sources, progress = query_of(manifest.queries[query]).sources, manifest.progress
    seen = [progress[source.stream].greatest for source in sources if source.stream in progress]
    return max([time for time in seen if time is not None], default=None)


def is_quiet(settings: OptimizerSettings, now: int) -> bool:
    """Return whether a time of day is one of the quiet ones. An hour that ends before it begins ends the day after."""
    time = now % DAY
    return any(begin <= time < end if begin <= end else time >= begin or time < end for begin, end in settings.quiet)
