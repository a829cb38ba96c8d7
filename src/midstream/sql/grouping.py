"""Aggregate queries: GROUP BY, the aggregate functions with FILTER, HAVING, EVERY."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import name
from midstream.expr.expression import Call, Column, Expression
from midstream.expr.rules import is_nested
from midstream.expr.types import family
from midstream.logical.query import GROUPED, START, Aggregate, AggregateCall, Output
from midstream.model.errors import LanguageError
from midstream.sql.aggregate_calls import FUNCTIONS, KNOWN, aggregate_call, as_known, result_type
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import CalendarWindow
from midstream.sql.dialect import CqlText
from midstream.sql.group_window import CumulativeWindow, GroupWindow, SessionWindow
from midstream.sql.place import error_at, not_in_language, place, word_at
from midstream.sql.scope import Scope
from midstream.sql.select_list import named_item, star, unique, written_out


def grouped(
    found: CqlText, tree: exp.Select, scope: Scope, window: GroupWindow | SessionWindow | CalendarWindow | None = None
) -> tuple[tuple[Output, ...], Aggregate] | None:
    """The outputs and the aggregate of a query; None if it has neither aggregates nor GROUP BY nor EVERY.

    A group window, already taken out of the tree, says when it is evaluated instead of EVERY.

    Raises LanguageError for aggregates without EVERY, EVERY without aggregates, and columns that are not grouped.
    """
    if any(tree.find_all(exp.Anonymous)):
        tree = tree.copy()
        tree.set("expressions", [item.transform(as_known) for item in tree.expressions])
    group, having = tree.args.get("group"), tree.args.get("having")
    _refuse_other_functions(found, tree)
    calls = (node for item in tree.expressions for node in item.find_all(exp.AggFunc))
    if isinstance(window, SessionWindow):
        outputs, aggregate = _Grouping(found, tree, scope).run(0)
        return outputs, replace(aggregate, session=window.gap)
    if isinstance(window, CalendarWindow):
        outputs, aggregate = _Grouping(found, tree, scope).run(0)
        return outputs, replace(aggregate, calendar=(window.unit, window.zone))
    if window is not None:
        outputs, aggregate = _Grouping(found, tree, scope).run(window.slide, window.offset)
        cumulates = isinstance(window, CumulativeWindow)
        return outputs, replace(aggregate, within=(window.size, window.moved) if cumulates else None)
    first = group or next(iter(calls), None) or having
    if first is None:
        if found.every is not None:
            raise LanguageError(
                "EVERY needs an aggregate",
                place=place(found.text, found.every[1]),
                remedy=f"select {KNOWN}, or leave EVERY out",
            )
        return None
    if found.every is None:
        raise error_at(
            found.text,
            first,
            "aggregates over a stream need EVERY",
            "say at which instants to compute them, such as EVERY 10 SECONDS at the end of the query; over one "
            "stream you may write GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS) or GROUP BY DATE_TRUNC('day', ts) instead",
        )
    return _Grouping(found, tree, scope).run(found.every[0])


def _refuse_other_functions(found: CqlText, tree: exp.Select) -> None:
    """Refuse what computes over many rows and is none of the aggregates known here."""
    for item in tree.expressions:
        if (over := item.find(exp.Window)) is not None:
            called = word_at(found.text, over).upper() or "a window function"
            remedy = "GROUP BY and EVERY, or GROUP BY TUMBLE(...), compute over windows of time"
            raise not_in_language(found.text, over, f"{called} ... OVER", remedy)
    for item in tree.expressions:
        for node in item.find_all(exp.AggFunc):
            if type(node) not in FUNCTIONS:
                called = (word_at(found.text, node) or node.sql_name()).upper()
                raise error_at(found.text, node, f"unknown aggregate {called!r}", f"use {KNOWN}")


class _Grouping:
    def __init__(self, found: CqlText, tree: exp.Select, scope: Scope) -> None:
        self.text, self.tree, self.scope = found.text, tree, scope
        self.inner = Binder(found.text, replace(scope, time=None), self.nested)
        self.outer = Binder(found.text, scope, self.aggregate)
        self.calls: list[AggregateCall] = []
        self.types: list[pa.DataType] = []

    def run(self, every: int, offset: int = 0) -> tuple[tuple[Output, ...], Aggregate]:
        groups = self.groups()
        places = {group.text(): number for number, group in reversed(list(enumerate(groups)))}
        named: list[tuple[str, Expression]] = []
        for node in self.tree.expressions:
            starred = star(self.outer, node)
            items = starred if starred is not None else [named_item(self.outer, node)]
            named += [(title, self.over_groups(node, expression, places)) for title, expression in items]
        having = self.having(places)
        return unique(named), Aggregate(groups, tuple(self.calls), every, having, offset)

    def having(self, places: dict[str, int]) -> Expression | None:
        clause = self.tree.args.get("having")
        if clause is None:
            return None
        condition = self.outer.condition(clause.this.transform(written_out, self.tree, self.scope))
        return self.over_groups(clause, condition, places)

    def groups(self) -> tuple[Expression, ...]:
        clause = self.tree.args.get("group")
        if clause is None:
            return ()
        extra = next((k for k, v in clause.args.items() if v and k != "expressions"), None)
        if extra is not None:
            raise not_in_language(self.text, clause, f"GROUP BY {extra.upper()}", "list the groups")
        groups = tuple(self.group(node) for node in clause.expressions)
        for node, group in zip(clause.expressions, groups, strict=True):
            if family(group.type) == "other" and not is_nested(group.type):
                raise error_at(
                    self.text,
                    node,
                    f"values of type {name(group.type)} cannot be grouped",
                    "group by numbers, strings or times",
                )
        return groups

    def group(self, node: exp.Expr) -> Expression:
        items = self.tree.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                raise error_at(
                    self.text,
                    node,
                    f"there is no column {node.name} in the select list",
                    f"use a number from 1 to {len(items)}",
                )
            return self.inner.bind(items[int(node.name) - 1].unalias())
        return self.inner.bind(written_out(node, self.tree, self.scope))

    def nested(self, node: exp.Expr) -> Expression | None:
        """What the inner binder says to aggregates: they stand in the select list only, and not in each other."""
        if isinstance(node, exp.AggFunc):
            raise LanguageError(
                "an aggregate is not allowed here",
                remedy="use aggregates in the select list, and not inside each other",
            )
        return None

    def aggregate(self, node: exp.Expr) -> Expression | None:
        """The column of an aggregate call, or of the start of a session; None for other nodes."""
        if isinstance(node, exp.Column) and node.table == GROUPED and self.scope.time is not None:
            return Column(self.scope.time, GROUPED, START)
        call = aggregate_call(node, self.inner)
        if call is None:
            return None
        if call not in self.calls:
            self.calls.append(call)
            self.types.append(result_type(call))
        at = self.calls.index(call)
        return Column(self.types[at], GROUPED, f"a{at}")

    def over_groups(self, node: exp.Expr, expression: Expression, places: dict[str, int]) -> Expression:
        """An output over the pseudo-source: groups replaced by their columns."""
        at = places.get(expression.text())
        if at is not None:
            return Column(expression.type, GROUPED, f"g{at}")
        if isinstance(expression, Call):
            inner = tuple(self.over_groups(node, a, places) for a in expression.arguments)
            return Call(expression.type, expression.function, inner)
        if isinstance(expression, Column) and expression.alias not in ("", GROUPED):
            shown = expression.text()
            raise error_at(
                self.text,
                node,
                f"column {shown} is neither in GROUP BY nor in an aggregate",
                f"add {shown} to GROUP BY, or put it in an aggregate",
            )
        return expression
