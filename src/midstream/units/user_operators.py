"""Users' operators in commands: checked before anything begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from midstream.logical.query import Query
from midstream.migration.strategy_contract import Strategy, discovered
from midstream.model.codec import decode
from midstream.model.errors import QueryError, StrategyError
from midstream.operators.user import fed, fed_columns
from midstream.operators.user_operator import LIFETIME, OperatorSpec
from midstream.units.choose import AUTO
from midstream.units.draft import MigrationStart


def check_operator(query: Query, operator: Mapping[str, Any], place: str) -> None:
    """Raise unless the operator can be made, and stand on this query."""
    if not query.plain:
        raise QueryError(
            "a user operator cannot run on top of an aggregate, a difference or an outer join",
            place=place,
            remedy="use a plain query, and let the operator group and subtract",
        )
    taken = {*LIFETIME} & {output.name for output in fed(query)}
    if taken:
        raise QueryError(
            f"the column name {min(taken)} is reserved for the lifetimes of an operator's rows",
            place=place,
            remedy="give the column another name",
        )
    results_of(query, operator)


def results_of(query: Query, operator: Mapping[str, Any]) -> pa.Schema:
    """Return the columns of an operator's results over a query."""
    spec = decode(OperatorSpec, operator)
    spec.remembers()
    return spec.schema(fed_columns(query))


def check_named(start: MigrationStart) -> None:
    """Raise where a strategy for an operator is left to the chooser, which predicts the plan's cost only."""
    if start.strategy == AUTO:
        raise StrategyError(
            "midstream cannot predict the cost of a user operator",
            place=f"query {start.query}",
            remedy=f"name a strategy: {', '.join(_feeding())}",
        )


def _feeding() -> list[str]:
    return [name for name, strategy in discovered().items() if strategy.feeds is not None]


def check_hand_over(
    name: str, query: Query, old: Mapping[str, Any] | None, new: Mapping[str, Any], strategy: Strategy
) -> None:
    """Raise unless the strategy can hand a query over from its operator to another."""
    place = f"query {name}"
    if old is None:
        raise StrategyError(
            f"query {name!r} has no operator to replace", place=place, remedy="add a query with an operator"
        )
    if strategy.feeds is None:
        raise StrategyError(
            f"{strategy.name} cannot replace the operator of query {name!r}, because midstream cannot read the "
            "operator's state",
            place=place,
            remedy=f"use a strategy that only feeds the operator: {', '.join(_feeding())}; or change only the plan",
        )
    kinds = {source.window.kind for source in query.sources if source.window is not None}
    if kinds != {"range"}:
        why = "its ROWS windows end when rows arrive" if "rows" in kinds else "it has no window"
        raise StrategyError(
            f"midstream cannot know when an operator on query {name!r} may forget a row: {why}",
            place=place,
            remedy="add a second query with the new operator, and drop the old query later",
        )
    check_operator(query, new, place)
    if not results_of(query, new).equals(results_of(query, old)):
        raise StrategyError(
            "the new operator must return the same columns as the old operator", place=place,
            remedy="add a second query with the new operator",
        )  # fmt: skip
    past, now = decode(OperatorSpec, old).remembers(), decode(OperatorSpec, new).remembers()
    if now > past and strategy.feeds != "beside":
        beside = [n for n, s in discovered().items() if s.feeds == "beside"]
        raise StrategyError(
            f"the new operator cannot remember rows for {now} microseconds, because the old operator only remembers "
            f"rows for {past}",
            place=place,
            remedy=f"use {' or '.join(beside)}, which waits until older rows do not matter",
        )


def result_columns(query: Query, operator: Mapping[str, Any] | None) -> pa.Schema:
    """Return the columns of a query's results, with a user's operator on top or without."""
    if operator is not None:
        return results_of(query, operator)
    return query.schema()
