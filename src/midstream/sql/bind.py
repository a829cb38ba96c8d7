"""From sqlglot's tree to our typed expressions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import ClassVar

from sqlglot import exp

from midstream.expr.coerce import cast, literal, name, number, plain, scalar
from midstream.expr.duration import parse_duration, unit_size
from midstream.expr.expression import MOST_DEPTH, Call, Column, Expression, Literal
from midstream.expr.function_nodes import HANDLERS, NODES
from midstream.expr.functions import CATALOGUE, INTERNAL, brought_functions, call
from midstream.expr.kernels.cast import PARTS
from midstream.expr.nested import constant_of, field_of, part_of
from midstream.expr.types import BOOLEAN, DURATION, NEVER_CAST, TEXT, family, from_sql
from midstream.expr.user_predicates import is_declared, registering, user_predicate
from midstream.expr.widening import widened_call
from midstream.model.errors import LanguageError
from midstream.model.schema import uuids_of
from midstream.sql.place import place_of, word_at
from midstream.sql.scope import Scope
from midstream.sql.spark_names import other_name

Hook = Callable[[exp.Expr], Expression | None]

_REFUSED = {
    exp.Subquery: "a subquery",
    exp.Select: "a subquery",
    exp.Exists: "a subquery",
    exp.Window: "a window function",
}
_REFUSED |= dict.fromkeys((exp.Rand, exp.Uuid), "a value that is another one each time")
_REFUSED |= {
    exp.AggFunc: "an aggregate",
    exp.Explode: "UNNEST",
    exp.Filter: "FILTER",
    exp.Star: "*",
    exp.Array: "a list that is written out",
    exp.Struct: "a struct that is written out",
    exp.ToMap: "a map that is written out",
    exp.Map: "a map that is written out",
    exp.Placeholder: "a parameter",
}
_WORDS = "comparisons, AND, OR, NOT, arithmetic, BETWEEN, LIKE, IN (list), IS NULL, CASE, CAST and scalar functions"


_CLOCKS = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime, exp.Localtimestamp)
_CLOCK_NAMES = frozenset({"now", "today", "getdate", "proctime", "transaction_timestamp", "get_current_timestamp"})
_OWN_NAMES = frozenset({"hop_ends", "cumulate_ends"})  # Functions that no other system has.
_CLOCK_NAMES |= frozenset({"current_timestamp", "current_date", "current_time", "unix_timestamp", "localtimestamp"})


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "between", "distinct"})


def _of_a_clock(node: exp.Expr) -> LanguageError:
    return LanguageError(
        f"{node.sql('duckdb')} reads a clock and cannot be in a query, because equal rows must give equal answers",
        remedy="use the times of the rows. Write A [RANGE 1 DAY] for the rows of the last day. Write A.ts - "
        "B.ts <= INTERVAL 1 DAY for rows less than a day apart. Write EVERY 1 MINUTE to get an answer each minute",
    )


_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.DPipe)


def _as_uuid(constant: Literal) -> Literal:
    """Return a text that a query compares with UUIDs as these are kept; raises where it is none."""
    if not isinstance(constant.value, str):
        return constant
    found = uuids_of(scalar(constant)).as_py()
    if found is None:
        raise LanguageError(
            f"{constant.value!r} is not a UUID", remedy="write a UUID such as 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"
        )
    return Literal(constant.type, found)


def _is_arithmetic(node: exp.Expr) -> bool:
    return isinstance(node, _ARITHMETIC) and node.this is not None and NODES[type(node)][1] == ("this", "expression")


def _balanced(name: str, parts: list[Expression]) -> Expression:
    """Conditions bound together two by two, so that many of them do not nest deeply."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [call(name, *pair) for pair in pairs] + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]


class Binder:
    """Turns sqlglot expressions into ours within a scope; every error names its place in the text.

    `hook` comes first for each node, and gives None for those it does not know: aggregates come in this way.
    """

    def __init__(self, text: str, scope: Scope, hook: Hook | None = None) -> None:
        self.text, self.scope, self.hook = text, scope, hook

    def condition(self, node: exp.Expr) -> Expression:
        """The condition of a node, which is true, false or NULL; raises LanguageError."""
        condition = self.bind(node)
        if family(condition.type) not in ("boolean", "null"):
            raise LanguageError(
                f"a condition cannot have the type {name(condition.type)}",
                place=place_of(self.text, node),
                remedy="write a comparison, such as x > 0",
            )
        return cast(condition, BOOLEAN)

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression of a node; raises LanguageError."""
        if node is None:  # The parser takes `f(x, )`.
            raise LanguageError("an expression is missing here", remedy="write a value")
        # The terms of a long sum are bound one after the other, and not each within the next.
        spine = list[exp.Expr]()
        while (found := self._placed(self._known, node)) is None and _is_arithmetic(node):
            spine.append(node)
            node = node.this
        found = found or self._placed(self._bind, node)
        assert found is not None
        for node in reversed(spine):
            found = self._placed(partial(self._bind_next, found), node)
            assert found is not None
        return found

    def _known(self, node: exp.Expr) -> Expression | None:
        return self.hook(node) if self.hook else None

    def _bind_next(self, left: Expression, node: exp.Expr) -> Expression:
        return self.call(NODES[type(node)][0], left, self.bind(node.expression))

    def _placed(self, bound: Hook, node: exp.Expr) -> Expression | None:
        try:
            found = bound(node)
            if found is not None and found.depth > MOST_DEPTH:
                raise LanguageError(
                    f"a query cannot nest functions and operators {found.depth} deep: the limit is {MOST_DEPTH}",
                    remedy="let another query compute a part, and read the answers of that query",
                )
            return found
        except LanguageError as error:
            if error.place:
                raise
            raise LanguageError(error.message, place=place_of(self.text, node), remedy=error.remedy) from error

    def _bind(self, node: exp.Expr) -> Expression:
        handler = self._HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if (arranged := HANDLERS.get(type(node))) is not None:
            return arranged(node, self)
        if isinstance(node, exp.In) and isinstance(node.this.unnest(), exp.Tuple) and node.expressions:
            return self._row_in(node)
        if isinstance(node, _CLOCKS):
            raise _of_a_clock(node)
        entry = NODES.get(type(node))
        if entry is None or node.args.get("symmetric") or node.args.get("query") or node.args.get("unnest"):
            what = next((w for kind, w in _REFUSED.items() if isinstance(node, kind)), None)
            if what is None and isinstance(node, exp.Func):
                written = word_at(self.text, node, called=True) or node.sql_name()
                if written.lower() in brought_functions():
                    return self._brought(written.lower(), (node.args.get(key) for key in node.arg_types))
                raise self._unknown(written)
            what = what or ("a subquery" if node.args.get("query") else f"{node.sql('duckdb')[:60]!r}")
            raise LanguageError(f"{what} is not allowed here", remedy=f"write {_WORDS}")
        name, keys = entry
        arguments: list[Expression] = []
        for key in keys:
            part = node.args.get(key)
            arguments += [self.bind(p) for p in part] if isinstance(part, list) else [self.bind(part)] if part else []
        return self.call(name, *arguments)

    def call(self, name: str, *arguments: Expression) -> Expression:
        """A function applied to arguments, with arithmetic that widens; raises LanguageError."""
        if name in _COMPARISONS and any(map(self.scope.is_uuid, arguments)):
            arguments = tuple(_as_uuid(one) if isinstance(one, Literal) else one for one in arguments)
        return widened_call(name, *arguments)

    def _brought(self, name: str, arguments: Iterable[exp.Expr | None]) -> Expression:
        return self.call(name, *(self.bind(argument) for argument in arguments if argument is not None))

    def _unknown(self, written: str) -> LanguageError:
        near = difflib.get_close_matches(written.lower(), (CATALOGUE.keys() - INTERNAL) | brought_functions().keys(), 3)
        perhaps = f"perhaps {' or '.join(one.upper() for one in near)}; " if near else ""
        return LanguageError(
            f"unknown function {written.upper()!r}",
            remedy=f"{perhaps}docs/functions.md lists the functions; register a predicate of your own "
            f"before you add the query: "
            f"{registering(written.lower())}",
        )

    def _chain(self, node: exp.Expr) -> Expression:
        """Return a chain of AND or OR as a balanced tree, so that long ones do not nest deeply."""
        parts, waiting = list[Expression](), [node]
        while waiting:
            part = waiting.pop()
            if type(part) is type(node):
                waiting += [part.args["expression"], part.this]
            else:
                parts.append(self.bind(part))
        return _balanced("and" if isinstance(node, exp.And) else "or", parts)

    def _column(self, node: exp.Expr) -> Expression:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise LanguageError(
                f"{node.sql('duckdb')!r} is not a column", remedy="write the column's name, or source.column"
            )
        column, fields = self.named(node)
        value = self.scope.shown(column)
        for part in fields:
            value = field_of(value, part)
        return value

    def title(self, node: exp.Column) -> str:
        """What a column of the answer is called that is a column, or a field of one; raises LanguageError."""
        column, fields = self.named(node)
        return fields[-1] if fields else column.name

    def named(self, node: exp.Column) -> tuple[Column, list[str]]:
        """The column that a name with dots means, and the fields within it."""
        first, *names = [part.name for part in node.parts]
        source, names = (first, names) if names and self.scope.is_source(first) else ("", [first, *names])
        try:
            return self.scope.column(names[0], source), names[1:]
        except LanguageError as error:
            raise LanguageError(error.message, place=place_of(self.text, node), remedy=error.remedy) from error

    def _field(self, node: exp.Expr) -> Expression:
        return field_of(self.bind(node.this), node.expression.name)

    def _subscript(self, node: exp.Expr) -> Expression:
        if len(node.expressions) != 1:
            raise LanguageError(
                "a pair of brackets cannot have several subscripts", remedy="write a pair of brackets for each: x[1][2]"
            )
        (key,) = node.expressions
        return part_of(self.bind(node.this), constant_of(key) or self.bind(key))

    def _literal(self, node: exp.Expr) -> Expression:
        return literal(node.name) if node.args["is_string"] else number(node.name)

    def _inner(self, node: exp.Expr) -> Expression:
        return self.bind(node.this)

    def _rows(self, node: exp.Expr) -> Expression:
        """Bind a comparison; one of row values, `(a, b) = (c, d)`, by their parts, from left to right."""
        left, right = node.this.unnest(), node.expression.unnest()
        if not isinstance(left, exp.Tuple) and not isinstance(right, exp.Tuple):
            return self.call(NODES[type(node)][0], self.bind(node.this), self.bind(node.expression))
        if not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
            raise LanguageError(
                "a row value must be compared with a row value",
                remedy="write the same number of values on both sides",
            )
        return self._compared(NODES[type(node)][0], left, right)

    def _compared(self, function: str, left: exp.Expr, right: exp.Expr) -> Expression:
        if len(left.expressions) != len(right.expressions):
            sizes = f"{len(left.expressions)} and {len(right.expressions)}"
            raise LanguageError(
                f"row values of different lengths cannot be compared: {sizes}",
                remedy="write the same number of values on both sides",
            )
        pairs = [
            (self.bind(one), self.bind(other)) for one, other in zip(left.expressions, right.expressions, strict=True)
        ]
        if function in ("eq", "ne"):
            return _balanced("and" if function == "eq" else "or", [self.call(function, *pair) for pair in pairs])
        strictly = {"le": "lt", "ge": "gt"}.get(function, function)
        found = self.call(function, *pairs[-1])
        for pair in reversed(pairs[:-1]):
            found = call("or", self.call(strictly, *pair), call("and", self.call("eq", *pair), found))
        return found

    def _row_in(self, node: exp.Expr) -> Expression:
        """Bind `(a, b) IN ((1, 2), (3, 4))`."""
        row, others = node.this.unnest(), [one.unnest() for one in node.expressions]
        if any(not isinstance(one, exp.Tuple) for one in others):
            raise LanguageError(
                "a row value must be compared with a row value",
                remedy="write the same number of values on both sides",
            )
        return _balanced("or", [self._compared("eq", row, other) for other in others])

    def _is(self, node: exp.Expr) -> Expression:
        value, other = self.bind(node.this), node.expression
        if isinstance(other, exp.Null):
            return call("is_null", value)
        if isinstance(other, exp.Boolean):
            return call("coalesce", value if other.this else call("not", value), literal(False))
        raise LanguageError("IS must be followed by NULL, TRUE or FALSE", remedy="use = to compare other values")

    def _same(self, node: exp.Expr) -> Expression:
        return call("not", self.call("distinct", self.bind(node.this), self.bind(node.expression)))

    def _like(self, node: exp.Expr, *escape: Expression) -> Expression:
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        found = call(name, self.bind(node.this), self.bind(node.expression), *escape)
        return call("not", found) if node.args.get("negate") else found

    def _escape(self, node: exp.Expr) -> Expression:
        inner, negated = node.this, False
        if isinstance(inner, exp.Not):
            inner, negated = inner.this, True
        if not isinstance(inner, exp.Like | exp.ILike):
            raise LanguageError("ESCAPE must follow LIKE or ILIKE", remedy="write: text LIKE pattern ESCAPE character")
        found = self._like(inner, self.bind(node.expression))
        return call("not", found) if negated else found

    def _case(self, node: exp.Expr) -> Expression:
        subject = self.bind(node.this) if node.this else None
        parts: list[Expression] = []
        for branch in node.args.get("ifs") or [node]:
            condition = self.bind(branch.this)
            parts.append(condition if subject is None else self.call("eq", subject, condition))
            parts.append(self.bind(branch.args["true"]))
        other = node.args.get("default")
        return self.call("case", *parts, self.bind(other) if other else literal(None))

    def _if(self, node: exp.Expr) -> Expression:
        other = node.args.get("false")
        chosen = self.bind(other) if other else literal(None)
        return self.call("case", self.bind(node.this), self.bind(node.args["true"]), chosen)

    def _cast(self, node: exp.Expr) -> Expression:
        value, type = plain(self.bind(node.this)), from_sql(node.args["to"])
        if "other" in (family(type), family(value.type)) and type != value.type:
            raise LanguageError(f"cannot cast {value.type} to {type}", remedy="cast between numbers, strings and times")
        tries, text = isinstance(node, exp.TryCast), family(value.type) in ("text", "null")
        if not tries and family(type) in NEVER_CAST.get(family(value.type), ()):
            raise LanguageError(
                f"a {name(value.type)} cannot be cast to {name(type)}", remedy="use TRY_CAST if you want NULL"
            )
        if node.args["to"].this == exp.DType.INT128 and family(value.type) == "float":
            value = call("round_even", value)  # As to any integer; to a DECIMAL(38) halves go away from zero.
        if node.args["to"].this == exp.DType.UUID and family(value.type) == "text":
            if self.scope.is_uuid(value) or (isinstance(value, Literal) and not tries):
                return _as_uuid(value) if isinstance(value, Literal) else value
            return Call(TEXT, "try_uuid" if tries else "as_uuid", (value,))
        if isinstance(value, Literal) and not tries:
            known = cast(value, type)  # Raises where the constant is not a value of the type.
            if text:
                return known
        return value if value.type == type else Call(type, "try_cast" if tries else "cast", (value,))

    def _interval(self, node: exp.Expr) -> Expression:
        number, unit = node.this, node.args.get("unit")
        negative = isinstance(number, exp.Neg)
        number = number.this if negative else number
        words = f"{number.name if isinstance(number, exp.Literal) else ''} {unit.name if unit else ''}".strip()
        negative ^= words.startswith("-")
        if not isinstance(number, exp.Literal) or (unit is not None and unit_size(unit.name) is None):
            raise LanguageError(
                "the interval must have a fixed length",
                remedy="write a number of weeks, days, hours, minutes or seconds",
            )
        size = parse_duration(words.lstrip("-"), what="the interval")
        return Literal(DURATION, timedelta(microseconds=-size if negative else size))

    def _extract(self, node: exp.Expr) -> Expression:
        part = node.this.name.lower()
        part = {"dow": "dayofweek", "doy": "dayofyear", "years": "year"}.get(part, part)
        if part not in PARTS:
            raise LanguageError(
                f"EXTRACT does not know the part {node.this.name!r}", remedy=f"use one of: {', '.join(PARTS)}"
            )
        return call(part, self.bind(node.expression))

    def _trim(self, node: exp.Expr) -> Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        characters = node.args.get("expression")
        return call(name, self.bind(node.this), *([self.bind(characters)] if characters else []))

    def _log(self, node: exp.Expr) -> Expression:
        base = node.this.name if node.expression else "10"
        if base not in ("2", "10"):
            raise LanguageError("LOG must have the base 2 or 10", remedy="use LN(x) / LN(base)")
        return self.call(f"log{base}", self.bind(node.expression or node.this))

    def _named(self, node: exp.Expr) -> Expression:
        name = node.name.lower()
        if name in _CLOCK_NAMES and not node.expressions:
            raise _of_a_clock(node)
        if name in brought_functions():
            return self._brought(name, node.expressions)
        if name in _OWN_NAMES:
            return self.call(name, *(self.bind(argument) for argument in node.expressions))
        # Who only reads a checkpoint loads no package for it.
        own = user_predicate(name) is not None if self.scope.registered else is_declared(name)
        if not own and (other := other_name(node)) is not None:
            return self.bind(other)
        # No other name of the catalogue stands for itself in a query, and none can be a user's.
        if name in CATALOGUE or (self.scope.registered and not own):
            raise self._unknown(node.name)
        arguments = tuple(self.bind(argument) for argument in node.expressions)
        return call(name, *arguments) if self.scope.registered else Call(BOOLEAN, name, arguments)

    _HANDLERS: ClassVar[dict[type[exp.Expr], Callable[[Binder, exp.Expr], Expression]]] = {
        exp.Column: _column,
        exp.Dot: _field,
        exp.Bracket: _subscript,
        exp.Literal: _literal,
        exp.Null: lambda self, node: literal(None),
        exp.Boolean: lambda self, node: literal(bool(node.this)),
        exp.HexString: lambda self, node: literal(bytes.fromhex(node.name)),
        exp.Paren: _inner,
        exp.And: _chain,
        exp.Or: _chain,
        exp.Is: _is,
        **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _rows),
        exp.NullSafeEQ: _same,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Escape: _escape,
        exp.Case: _case,
        exp.If: _if,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Interval: _interval,
        exp.Extract: _extract,
        exp.Trim: _trim,
        exp.Log: _log,
        exp.Anonymous: _named,
    }
