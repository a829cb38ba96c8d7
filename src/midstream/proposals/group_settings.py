"""What queries that move together allow: no decision is made that one of them forbids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midstream.logical.query import Query, query_of
from midstream.migration.strategy_contract import discovered
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.model.optimization import MODES, OptimizerSettings
from midstream.plan.decompose import same_shape
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Plan
from midstream.sharing.shape import canonical_plan, own_plan


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
