"""A spread as a user names it, checked: which scheme, over how many nodes, with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from midstream.expr.duration import parse_duration
from midstream.logical.query import Query, query_of
from midstream.model.errors import MidstreamError, PlanError, QueryError
from midstream.model.ids import digest
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import AUTO_NODES, NodeSpread
from midstream.plan.notation import parse_plan
from midstream.plan.tree import MultiJoin, Plan
from midstream.ring.deploy import begun_slices, deployment_of, windows_of
from midstream.ring.deployment import MOST_NODES, always_carried
from midstream.ring.lengthening import LATENCY, OBJECTIVES
from midstream.ring.relocate import RELOCATION, relocation_of
from midstream.ring.spreading import Spreading, spreading, spreadings

AUTO = "auto"
"""The spread that suits a query best: the first in order of preference that carries it."""

OBJECTIVE = "objective"
"""The option of every spread that says what the number of nodes is chosen for."""

DEFAULT_NODES = 4
"""So many nodes unless the user names another number; the cost model begins with them, too."""


def spread_entry(
    manifest: Manifest,
    name: str,
    entry: QueryEntry,
    scheme: str | None,
    nodes: int | str | None,
    options: Mapping[str, Any],
) -> QueryEntry:
    """Make the entry of a query as it is spread from this step on, in a lane group of its own.

    Where its plan is not one of probing orders, it gets some. Raises where it cannot be spread so.
    """
    place, query = f"query {name}", query_of(entry)
    if scheme is None:
        raise QueryError(
            "nodes and options need a spread, but none is named", place=place,
            remedy=f"name one of: {AUTO}, {', '.join(spreadings())}",
        )  # fmt: skip
    if entry.operator is not None:
        raise QueryError(
            "a query with a user operator on top cannot be spread over nodes", place=place,
            remedy="leave out the operator or the spread",
        )  # fmt: skip
    check_spreadable(query, place)
    by_master = scheme != AUTO and "master" in spreading(scheme, place).options
    plan = probing_orders(query, entry.plan, place, _master(query, options, place) if by_master else "")
    spread = declared(manifest, query, plan, scheme, nodes, options, place)
    return replace(entry, plan=plan.notation(), group=_free_group(manifest, name), nodes=spread)


def _free_group(manifest: Manifest, name: str) -> str:
    # Others may still have the nodes that began with the query's own group.
    taken, own = {entry.group for other, entry in manifest.queries.items() if other != name}, f"nodes-{digest(name)}"
    present = manifest.queries.get(name)
    if present is not None and present.nodes is not None and present.group not in taken:
        return present.group
    return next(one for one in chain([own], (f"{own}-{number}" for number in count(1))) if one not in taken)


def declared(
    manifest: Manifest, query: Query, plan: MultiJoin, scheme: str, nodes: int | str | None,
    options: Mapping[str, Any], place: str,
) -> NodeSpread:  # fmt: skip
    """Make the spread of a query by these orders, beginning with this step."""
    orders = [(alias, *order) for alias, order in plan.orders]
    found = _preferred(query, orders) if scheme == AUTO else spreading(scheme, place)
    count = DEFAULT_NODES if nodes in (None, AUTO_NODES) else nodes
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_NODES:
        raise PlanError(
            f"the number of nodes cannot be {count!r}", place=place, remedy=f"use 1 to {MOST_NODES}, or {AUTO_NODES}"
        )
    _, options = relocation_of(options, place)
    objective, options = _objective(options, nodes, place)
    unknown = sorted(options.keys() - set(found.options))
    if unknown:
        known = ", ".join((*found.options, RELOCATION, OBJECTIVE))
        having = " and ".join(one.name for one in spreadings().values() if unknown[0] in one.options)
        elsewhere = f"; {unknown[0]} is an option of {having}" if having else ""
        raise PlanError(
            f"{found.name} has no option {unknown[0]!r}", place=place, remedy=f"options: {known}{elsewhere}"
        )
    widest = max(*windows_of(query).values(), 1)
    spread = NodeSpread(
        found.name,
        count,
        manifest.step,
        auto=nodes == AUTO_NODES,
        objective=objective,
        master=_master(query, options, place) if "master" in found.options else "",
        segment=_segment(options, widest, place) if "segment" in found.options else 0,
        copies=_copies(options, count, place),
        count_bound=_count_bound(options, place),
    )
    spread = begun_slices(query, spread)
    _check(found, query, spread, orders, place)
    return spread


def _preferred(query: Query, orders: Sequence[Sequence[str]]) -> Spreading:
    # Keys place rows where at every hop an equality gives the next one's key.
    carried = always_carried(query, orders)
    fitting = [one for one in spreadings().values() if one.preference is not None and (carried or not one.by_key)]
    return next(one for one in sorted(fitting, key=_preference) if _carries(one, query, orders))


def _preference(one: Spreading) -> int:
    return one.preference or 0


def _carries(one: Spreading, query: Query, orders: Sequence[Sequence[str]]) -> bool:
    try:
        one.check(deployment_of(query, begun_slices(query, NodeSpread(one.name, 1, 0))), orders)
    except PlanError:
        return False
    return True


def check_spreadable(query: Query, place: str) -> None:
    """Raise unless the query is a join over RANGE windows with nothing but a select list on top."""
    remedy = "leave the spread out: the query runs in one lane, or in lanes where one key ties all its streams"
    if query.on_top is not None:
        raise QueryError(query.on_top.not_spread, place=place, remedy=remedy)
    if len(query.sources) < 2:
        raise QueryError("a query over one stream has no join to spread", place=place, remedy=remedy)
    counted = [s.alias for s in query.sources if s.window is not None and s.window.kind == "rows"]
    if counted:
        raise QueryError(
            f"{counted[0]} has a ROWS window, but no node sees all rows that the window counts",
            place=place,
            remedy=remedy,
        )


def probing_orders(query: Query, notation: str | None, place: str, first: str = "") -> MultiJoin:
    """Parse the probing orders of a notation; without one they go by which predicates bind, the `first` source
    first."""
    if notation:
        return orders_of(parse_plan(notation, query), place)
    return MultiJoin(tuple((alias, _order(query, alias, first)) for alias in query.aliases))


def orders_of(plan: Plan, place: str) -> MultiJoin:
    """Return the plan, if it is one of probing orders; raises `PlanError` otherwise."""
    if isinstance(plan, MultiJoin):
        return plan
    example = MultiJoin(tuple((a, tuple(b for b in plan.aliases() if b != a)) for a in plan.aliases()))
    raise PlanError(
        f"nodes cannot run {plan.notation()}, which keeps intermediate results: nodes keep only base rows",
        place=place, remedy=f"write probing orders such as {example.notation()}, or leave the plan out",
    )  # fmt: skip


def check_orders(query: Query, spread: NodeSpread, plan: Plan, place: str) -> None:
    """Raise unless a query that is spread so can go by this plan, also in rows that run out where they lie."""
    orders = [(alias, *order) for alias, order in orders_of(plan, place).orders]
    for one in spread.all:
        _check(spreading(one.scheme), query, one, orders, place)


def _check(found: Spreading, query: Query, spread: NodeSpread, orders: Sequence[Sequence[str]], place: str) -> None:
    try:
        found.check(deployment_of(query, begun_slices(query, spread)), orders)
    except MidstreamError as error:
        raise type(error)(error.message, place=f"{place}, {error.place}", remedy=error.remedy) from None


def _order(query: Query, alias: str, first: str) -> tuple[str, ...]:
    seen, waiting = [alias], [other for other in query.aliases if other != alias]
    if first in waiting:
        seen.append(first)
        waiting.remove(first)
    while waiting:
        tied = (other for other in waiting if any(
            other in p.aliases() and p.aliases() <= {*seen, other} for p in query.predicates))  # fmt: skip
        following = next(tied, waiting[0])
        seen.append(following)
        waiting.remove(following)
    return tuple(seen[1:])


def _master(query: Query, options: Mapping[str, Any], place: str) -> str:
    name = options.get("master", query.aliases[0])
    if name not in query.aliases:
        raise PlanError(
            f"the master cannot be {name!r}, which the query does not read", place=place,
            remedy=f"use one of: {', '.join(query.aliases)}",
        )  # fmt: skip
    return str(name)


def _copies(options: Mapping[str, Any], nodes: int, place: str) -> int:
    given = options.get("copies", min(2, nodes))
    if not isinstance(given, int) or isinstance(given, bool):
        raise PlanError(f"the number of copies cannot be {given!r}", place=place, remedy=f"use 1 to {nodes}")
    return given


def _objective(options: Mapping[str, Any], nodes: int | str | None, place: str) -> tuple[str, dict[str, Any]]:
    # What the number of nodes is chosen for, and the other options.
    given = options.get(OBJECTIVE, LATENCY)
    if given not in OBJECTIVES:
        raise PlanError(f"unknown objective {given!r}", place=place, remedy=f"use one of: {', '.join(OBJECTIVES)}")
    if OBJECTIVE in options and nodes != AUTO_NODES:
        raise PlanError(
            f"an objective needs nodes = {AUTO_NODES!r}, but the query has {nodes or DEFAULT_NODES} nodes", place=place,
            remedy=f"leave the objective out, or set nodes to {AUTO_NODES}",
        )  # fmt: skip
    return given, {name: value for name, value in options.items() if name != OBJECTIVE}


def _count_bound(options: Mapping[str, Any], place: str) -> int | str:
    given = options.get("count_bound")
    if given is None:
        return 0
    if given == AUTO:
        return AUTO
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise PlanError(
            f"a slice cannot be limited to {given!r} rows", place=place,
            remedy=f"use 1 or more, or {AUTO}; or leave the option out",
        )  # fmt: skip
    return given


def _segment(options: Mapping[str, Any], widest: int, place: str) -> int:
    given = options.get("segment")
    if given is None:
        return widest
    try:
        return parse_duration(given, what="the segment")
    except MidstreamError as error:
        raise PlanError(error.message, place=place, remedy=error.remedy) from None
