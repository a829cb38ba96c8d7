"""Aggregate queries: GROUP BY, the aggregate functions with FILTER, HAVING, EVERY."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from midstream.language.bind import Binder
from midstream.language.coerce import cast, name, plain
from midstream.language.cql_tokens import CqlText
from midstream.language.expression import Call, Column, Expression
from midstream.language.functions import call as called
from midstream.language.group_window import GroupWindow
from midstream.language.place import place, place_of, word_at
from midstream.language.query import Aggregate, AggregateCall, Output
from midstream.language.scope import Scope, find_name
from midstream.language.select_list import named_item, star, unique
from midstream.language.types import BOOLEAN, DOUBLE, INT64, NUMBERS, WIDEST, family
from midstream.model.errors import LanguageError

GROUPED = "#"
"""The pseudo-source that the outputs of an aggregate query read."""

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CountIf: "count_if",
}

KNOWN = (
    "COUNT, COUNT_IF, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, STDDEV, STDDEV_POP, VARIANCE, VAR_POP, "
    "BOOL_AND or BOOL_OR"
)
_QUANTILES = frozenset({"quantile_cont", "quantile_disc"})


def grouped(
    found: CqlText, tree: exp.Select, scope: Scope, window: GroupWindow | None = None
) -> tuple[tuple[Output, ...], Aggregate] | None:
    """The outputs and the aggregate of a query; None if it has neither aggregates nor GROUP BY nor EVERY.

    A group window, already taken out of the tree, says when it is evaluated instead of EVERY.

    Raises LanguageError for aggregates without EVERY, EVERY without aggregates, and columns that are not grouped.
    """
    group, having = tree.args.get("group"), tree.args.get("having")
    calls = [node for item in tree.expressions for node in item.find_all(exp.AggFunc) if type(node) in _FUNCTIONS]
    over = next((node for item in tree.expressions for node in item.find_all(exp.Window)), None)
    if over is not None:
        raise LanguageError(
            f"{word_at(found.text, over).upper() or 'a window function'} ... OVER is not part of the language",
            place=place_of(found.text, over),
            remedy="GROUP BY and EVERY, or GROUP BY TUMBLE(...), compute over windows of time",
        )
    unknown = [node for item in tree.expressions for node in item.find_all(exp.AggFunc) if type(node) not in _FUNCTIONS]
    if unknown:
        raise LanguageError(
            f"unknown aggregate {(word_at(found.text, unknown[0]) or unknown[0].sql_name()).upper()!r}",
            place=place_of(found.text, unknown[0]),
            remedy=f"use {KNOWN}",
        )
    if window is not None:
        return _Grouping(found, tree, scope).run(window.slide, window.offset)
    first = group or next(iter(calls), None) or having
    if first is None:
        if found.every is not None:
            raise LanguageError(
                "EVERY without aggregates",
                place=place(found.text, found.every[1]),
                remedy=f"select {KNOWN}, or leave EVERY out",
            )
        return None
    if found.every is None:
        raise LanguageError(
            "aggregates over a stream need EVERY",
            place=place_of(found.text, first),
            remedy="say at which instants to compute them, such as EVERY 10 SECONDS at the end of the query; or, over "
            "one stream, GROUP BY TUMBLE(ts, INTERVAL 10 SECONDS)",
        )
    return _Grouping(found, tree, scope).run(found.every[0])


class _Grouping:
    def __init__(self, found: CqlText, tree: exp.Select, scope: Scope) -> None:
        self.text, self.tree, self.scope = found.text, tree, scope
        self.inner = Binder(found.text, replace(scope, time=False), self.nested)
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
        """The condition that groups must satisfy; a name may be that of an item of the select list."""
        clause = self.tree.args.get("having")
        if clause is None:
            return None
        condition = self.outer.condition(clause.this.transform(self.written_out))
        return self.over_groups(clause, condition, places)

    def written_out(self, node: exp.Expr) -> exp.Expr:
        """A name of an item of the select list, that is no column's, as what it stands for."""
        return node if (item := self.titled(node)) is None else item

    def titled(self, node: exp.Expr) -> exp.Expr | None:
        """The item of the select list that a name stands for; None where it is a column, or nothing's."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        known = {c.name for alias, _ in self.scope.sources for c in self.scope.columns(alias)}
        titles = {item.alias: item for item in self.tree.expressions if item.alias}
        chosen = find_name(node.name, titles)
        if len(chosen) != 1 or find_name(node.name, known):
            return None
        item: exp.Expr = titles[chosen[0]].unalias()
        return item

    def groups(self) -> tuple[Expression, ...]:
        clause = self.tree.args.get("group")
        if clause is None:
            return ()
        extra = next((k for k, v in clause.args.items() if v and k != "expressions"), None)
        if extra is not None:
            raise self.error(clause, f"GROUP BY {extra.upper()} is not part of the language", "list the groups")
        groups = tuple(self.group(node) for node in clause.expressions)
        for node, group in zip(clause.expressions, groups, strict=True):
            if family(group.type) == "other":
                raise self.error(node, f"values of type {name(group.type)} do not group", "group by plain types")
        return groups

    def group(self, node: exp.Expr) -> Expression:
        items = self.tree.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                raise self.error(node, f"there is no column {node.name} in the select list", f"use 1 to {len(items)}")
            return self.inner.bind(items[int(node.name) - 1].unalias())
        return self.inner.bind(self.written_out(node))

    def nested(self, node: exp.Expr) -> Expression | None:
        """What the inner binder says to aggregates: they stand in the select list only, and not in each other."""
        if isinstance(node, exp.AggFunc):
            raise LanguageError(
                "an aggregate cannot stand here", remedy="use aggregates in the select list, not nested"
            )
        return None

    def aggregate(self, node: exp.Expr) -> Expression | None:
        """The column of an aggregate call; None for other nodes."""
        condition: Expression | None = None
        if isinstance(node, exp.Filter):
            condition = self.inner.condition(node.expression.this)
            node = node.this
        share: float | None = None
        if isinstance(node, exp.WithinGroup) and type(node.this) in (exp.PercentileCont, exp.PercentileDisc):
            node = _plain_quantile(node)
        function = _FUNCTIONS.get(type(node))
        if function in _QUANTILES:
            share, node = _share(node), node.copy()
            node.set("expression", None)
        if function is None:
            if condition is not None:
                raise LanguageError(f"FILTER after {node.key.upper()}", remedy=f"use {KNOWN} before FILTER")
            return None
        argument, distinct = node.this, False
        if isinstance(argument, exp.Distinct):
            distinct = True
            if function != "count" or len(argument.expressions) != 1:
                raise LanguageError("DISTINCT here", remedy="only COUNT(DISTINCT x) of one value is known")
            argument = argument.expressions[0]
        if node.expressions:
            raise LanguageError(f"{function.upper()} takes one argument", remedy=f"write {function.upper()}(x)")
        value = None if argument is None or isinstance(argument, exp.Star) else plain(self.inner.bind(argument))
        if value is None and function != "count":
            raise LanguageError(f"{function.upper()}(*)", remedy=f"write {function.upper()}(column)")
        if function == "count_if" and value is not None:
            function, condition = "count", _both(condition, cast(value, BOOLEAN))
            value = None
        call = AggregateCall(function, value, distinct, condition, share)
        if call not in self.calls:
            self.calls.append(call)
            self.types.append(_result(call, checked=self.scope.checked))
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
            raise self.error(
                node, f"column {shown} is not grouped", f"add {shown} to GROUP BY, or put it in an aggregate"
            )
        return expression

    def error(self, node: exp.Expr, message: str, remedy: str) -> LanguageError:
        return LanguageError(message, place=place_of(self.text, node), remedy=remedy)


def _both(one: Expression | None, other: Expression) -> Expression:
    return other if one is None else called("and", one, other)


def _plain_quantile(node: exp.Expr) -> exp.Expr:
    """`PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)` as `QUANTILE_CONT(x, 0.5)`."""
    (ordered,) = node.expression.expressions
    share = node.this.this
    if ordered.args.get("desc"):
        share = exp.Literal.number(1 - float(share.name)) if isinstance(share, exp.Literal) else share
    found: exp.Expr = type(node.this)(this=ordered.this.copy(), expression=share.copy())
    return found


def _share(node: exp.Expr) -> float:
    share = node.args.get("expression") or node.args.get("quantile")
    if not isinstance(share, exp.Literal) or share.is_string or not 0 <= float(share.name) <= 1:
        raise LanguageError("a quantile of a share that is no number from 0 to 1", remedy="write QUANTILE_CONT(x, 0.9)")
    return float(share.name)


def _result(call: AggregateCall, *, checked: bool) -> pa.DataType:
    """COUNT and sums of INT are BIGINT, sums of BIGINT DECIMAL(38) where they are checked, AVG and MEDIAN DOUBLE, MIN
    and MAX of their argument's type.
    """
    if call.argument is None or call.function == "count":
        if call.distinct and call.argument is not None and family(call.argument.type) == "other":
            raise LanguageError(f"values of type {name(call.argument.type)} do not compare", remedy="count plain types")
        return INT64
    type = call.argument.type
    kind = family(type)
    if call.function in ("min", "max"):
        if kind in ("other", "null"):
            raise LanguageError(f"{call.function.upper()} of a {name(type)}", remedy="use values that compare")
        return type
    if call.function == "quantile_disc" and kind not in ("other", "null"):
        return type
    if call.function in ("bool_and", "bool_or"):
        if kind != "boolean":
            raise LanguageError(f"{call.function.upper()} of a {name(type)}", remedy="use a condition")
        return BOOLEAN
    if kind not in NUMBERS:
        raise LanguageError(f"{call.function.upper()} of a {name(type)}", remedy="use numbers")
    if call.function == "sum":
        if checked and kind == "integer" and type.bit_width == 64:
            return WIDEST
        return {"integer": INT64, "float": DOUBLE}.get(kind) or pa.decimal128(38, type.scale)
    return DOUBLE
