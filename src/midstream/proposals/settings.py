"""Settings of the optimizer held against what there is: policies, objectives, plans, strategies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from midstream.expr.duration import parse_duration
from midstream.logical.query import Query, query_of
from midstream.migration.strategy_contract import MigrationRequest, strategies, strategy
from midstream.model.errors import MidstreamError, PlanError, QueryError
from midstream.model.manifest import Manifest
from midstream.model.optimization import MODES, OptimizerSettings
from midstream.optimizer.chooser import checked
from midstream.optimizer.cost.calibration import units_to_json
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.policies.policy_contract import Policy, policy
from midstream.plan.decompose import same_shape
from midstream.plan.notation import default_plan, parse_plan
from midstream.plan.tree import Plan
from midstream.proposals.plan_group import has_conditions_to_order, is_chart_policy, without_choice
from midstream.sharing.shape import canonical_plan, own_plan
from midstream.sql.job_file import JobFile

WEIGHTS = ("work", "memory")
"""What a plan's cost is made of; each may be given a weight."""

MOST = 1e9
"""The greatest weight and option: with more, costs that are multiplied may be no numbers any longer."""

MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 86_400_000_000
"""Microseconds."""


def settings_of_values(given: Mapping[str, Any], place: str) -> OptimizerSettings:
    """Parse the settings that a program, a job file or a command line gives. Durations and times of day are text.

    >>> settings_of_values({"mode": "ask", "review": "1 minute", "quiet": ["22:00-06:00"]}, "here").quiet
    ((79200000000, 21600000000),)
    """
    known = {one.name for one in fields(OptimizerSettings)}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise _wrong(f"unknown setting {unknown[0]!r}", place, f"use one of: {', '.join(sorted(known))}")
    values = dict(given)
    for name in ("weights", "options", "units"):
        if not isinstance(values.setdefault(name, {}), Mapping):
            raise _wrong(f"{name} is {values[name]!r}", place, "give a mapping from names to numbers")
    for name in ("allow", "quiet"):
        many = values.setdefault(name, ())
        if isinstance(many, str) or not isinstance(many, Sequence) or not all(isinstance(one, str) for one in many):
            raise _wrong(f"{name} is {many!r}", place, "give a list of strings")
    for name in ("review", "horizon"):
        if isinstance(values.get(name), str):
            values[name] = parse_duration(values[name], what=name, place=place)
    values["allow"], values["quiet"] = tuple(values["allow"]), tuple(_quiet(text, place) for text in values["quiet"])
    settings = OptimizerSettings(**values)
    check_settings(settings, place)
    return settings


def declared_optimizer(file: JobFile) -> dict[str, OptimizerSettings]:
    """Parse what a job file says of the optimizer, by query. The key "" has those without settings of their own.

    A query whose table names no mode takes that of the job, which is `suggest` where none is written.
    """
    tables = {**file.optimizers, **({} if file.optimizer is None else {"": file.optimizer})}
    places = {name: f"[queries.{name}.optimizer]" if name else "[optimizer]" for name in tables}
    mode = (file.optimizer or {}).get("mode", OptimizerSettings.mode)
    return {name: settings_of_values({"mode": mode, **table}, places[name]) for name, table in tables.items()}


def _quiet(text: str, place: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d{1,2}):([0-5]\d)\s*-\s*(\d{1,2}):([0-5]\d)\s*", text)
    if found is None:
        raise _wrong(f"quiet hours cannot be read: {text!r}", place, "write two times of day, such as 22:00-06:00")
    hours = [int(number) for number in found.groups()]
    return hours[0] * HOUR + hours[1] * MINUTE, hours[2] * HOUR + hours[3] * MINUTE


def check_settings(settings: OptimizerSettings, place: str) -> None:
    """Raise where settings name what there is not, or have other values where numbers are wanted."""
    chosen = policy(settings.policy, place)
    if settings.mode not in MODES:
        raise _wrong(f"unknown mode {settings.mode!r}", place, f"use one of: {', '.join(MODES)}")
    if settings.lanes is not None and settings.lanes not in MODES:
        raise _wrong(
            f"unknown mode {settings.lanes!r} for the number of lanes", place, f"use one of: {', '.join(MODES)}"
        )
    try:
        checked(settings.objective)
    except MidstreamError as error:
        raise _wrong(error.message, place, error.remedy) from None
    _check_numbers(settings.weights, WEIGHTS, "weight", place)
    if settings.weights and not any(settings.weights.values()):
        raise _wrong("the weights cannot all be 0", place, "give one weight a number above 0")
    _check_numbers(settings.units, tuple(units_to_json(JoinUnitCosts())), "unit cost", place)
    _check_options(settings.options, chosen, place)
    for name, span in (("review", settings.review), ("horizon", settings.horizon)):
        given = span is not None or name == "review"
        if given and (not isinstance(span, int) or isinstance(span, bool) or span <= 0):
            raise _wrong(f"{name} is {span!r}", place, "use a duration of more than 0, such as '10 seconds'")
    effort = settings.effort
    if not isinstance(effort, int | float) or isinstance(effort, bool) or not 0 < effort <= 1:
        raise _wrong(f"effort is {effort!r}", place, "use a share of the work above 0 and up to 1, such as 0.03")
    for begin, end in settings.quiet:
        if not (0 <= begin < DAY and 0 <= end <= DAY and begin != end):
            raise _wrong(
                "quiet hours must be two different times within a day",
                place,
                "use two times of day, such as 22:00-06:00",
            )


def check_allowed(manifest: Manifest, query: str, settings: OptimizerSettings) -> None:
    """Raise where a query has nothing to choose from, by itself or because the list of what is allowed leaves nothing.

    To switch the optimizer off is always possible.
    """
    if settings.mode == "off":
        return
    place = f"query {query}"
    reason = without_choice(manifest, query)
    if reason and has_conditions_to_order(manifest, query) and is_chart_policy(settings.policy):
        if settings.mode != "auto":
            raise _wrong(
                f"in mode {settings.mode} policy {settings.policy} cannot order the conditions of query {query!r}",
                place,
                "set the mode of the query to auto: an order of conditions changes without a migration",
            )
        return
    if reason:
        raise _wrong(
            f"there is nothing to choose for query {query!r}: {reason}", place, "set the mode of the query to off"
        )
    bound, plans = query_of(manifest.queries[query]), list[Plan]()
    for one in settings.allow:
        if one in strategies():
            continue
        try:
            plans.append(parse_plan(one, bound))
        except PlanError as error:
            known = ", ".join(strategies())
            remedy = f"list plans of the query, such as {manifest.queries[query].plan!r}, or strategies: {known}"
            raise _wrong(f"{one!r} is neither a plan nor a strategy: {error.message}", place, remedy) from None
    running = parse_plan(manifest.queries[query].plan, bound)
    others = [plan for plan in plans if not same_shape(plan, running)]
    if plans and not others:
        raise _wrong(
            f"the allowed plans leave no choice: query {query!r} already runs {running.notation()}",
            place,
            f"allow another plan too, or pin the running plan: midstream pin CKPT {query}",
        )
    reason = _carried_by_none(query, bound, running, others, [one for one in settings.allow if one in strategies()])
    if reason:
        raise _wrong(
            f"no allowed strategy can migrate query {query!r} to another plan: {reason}",
            place,
            "allow another strategy too, such as moving_state",
        )


def _carried_by_none(query: str, bound: Query, running: Plan, others: Sequence[Plan], allowed: Sequence[str]) -> str:
    # Empty where one of the strategies allowed, if some are, carries the query to another plan.
    first, *rest = bound.aliases
    forms = (f"[{' | '.join(_order(one, bound.aliases) for one in bound.aliases)}]", f"eddy({first} {' '.join(rest)})")
    to = others or [default_plan(bound), *(parse_plan(form, bound) for form in forms)]
    refusals = [
        strategy(name).refusal(MigrationRequest(query, running.notation(), plan, True, {}, bound.plain))
        for name in allowed
        for plan in to
    ]
    return next((one for one in refusals if one), "") if all(refusals) else ""


def _order(alias: str, aliases: Sequence[str]) -> str:
    return f"{alias}: {' '.join(one for one in aliases if one != alias)}"


def reworded(manifest: Manifest, query: str, before: Query) -> Manifest:
    """Rewrite what is kept for the optimizer of a query whose text was `before`: its plans have the new aliases.

    What the policy remembers is of the old window and filters, and is forgotten, as is the order of conditions.
    """
    if manifest.queries[query].order:
        manifest = manifest.with_query(query, replace(manifest.queries[query], order={}))
    kept, now = manifest.optimizations.get(query), query_of(manifest.queries[query])
    if kept is None:
        return manifest
    settings = kept.settings
    if settings is not None:
        allow = tuple(
            one if one in strategies() else own_plan(now, canonical_plan(before, one)) for one in settings.allow
        )
        settings = replace(settings, allow=allow)
    kept = replace(kept, settings=settings, policy="", memory={})
    return replace(manifest, optimizations={**manifest.optimizations, query: kept})


def check_allowed_anywhere(settings: OptimizerSettings, place: str) -> None:
    """Raise where settings for all queries list plans: those belong to one query."""
    wrong = next((one for one in settings.allow if one not in strategies()), None)
    if wrong is not None:
        raise _wrong(
            f"{wrong!r} is not a strategy",
            place,
            f"to allow a plan, also name its query; the strategies are: {', '.join(strategies())}",
        )


def check_lanes_of_job(settings: OptimizerSettings, place: str) -> None:
    """Raise where settings for one query have a mode for lanes: those are all queries'."""
    if settings.lanes is not None:
        raise _wrong(
            "the mode for the number of lanes applies to the whole job, not to one query",
            place,
            "set this mode without naming a query",
        )


def _check_options(given: Mapping[str, Any], chosen: Policy, place: str) -> None:
    what = f"option of {chosen.name}"
    for name, words in chosen.words.items():
        if given.get(name, words[0]) not in words:
            raise _wrong(f"{what} {name!r} cannot be {given[name]!r}", place, f"use one of: {', '.join(words)}")
    numbers = {name: value for name, value in given.items() if name not in chosen.words}
    _check_numbers(numbers, tuple(chosen.options), what, place, chosen.greatest)
    refused = chosen.refusal(given)
    if refused is not None:
        raise _wrong(f"{what}: {refused[0]}", place, refused[1])


def _check_numbers(
    given: Mapping[str, Any], known: tuple[str, ...], what: str, place: str, greatest: float = MOST
) -> None:
    for name, value in given.items():
        if name not in known:
            remedy = f"use one of: {', '.join(known)}" if known else "it has none"
            raise _wrong(f"unknown {what} {name!r}", place, remedy)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= greatest:
            raise _wrong(f"{what} {name!r} cannot be {value!r}", place, f"use a number from 0 to {greatest:g}")


def _wrong(message: str, place: str, remedy: str) -> QueryError:
    return QueryError(message, place=place, remedy=remedy)
