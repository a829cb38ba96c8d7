"""Typed scalar expressions over the columns of one or more sources: frozen values.

`Expression.text` is canonical and keeps expressions apart; `infix` is how a reader would write them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property, update_wrapper
from math import isfinite
from typing import Any

import pyarrow as pa
from typing_extensions import override

from midstream.model.codec import OwnForm, type_of, type_text
from midstream.model.words import span_text

TIME_COLUMN = "_ts"
"""The pseudo-column that names a result's time when a query selects it."""


MOST_DEPTH = 220
"""So deep may an expression be: Python computes some of what is known of one with three calls a level, of 1,000."""


@dataclass(frozen=True)
class Expression(OwnForm):
    """A node of an expression tree; `type` is the Arrow type of its value."""

    type: pa.DataType

    @override
    def to_json(self) -> list[list[Any]]:
        """The nodes of the tree in postfix order: a column, a constant, or a call with its number of arguments.

        >>> Column(pa.int64(), "A", "k").to_json()
        [['A', 'k', 'int64']]
        """
        # A list, because a tree is deeper than a JSON parser may recurse.
        nodes, waiting = list[Expression](), list[Expression]([self])
        while waiting:
            nodes.append(waiting.pop())
            waiting += nodes[-1].children()
        return [node._own_json() for node in reversed(nodes)]

    @classmethod
    @override
    def from_json(cls, value: Any) -> Expression:
        made = list[Expression]()
        for node in value:
            match node:
                case [str(alias), str(name), str(kind)]:
                    made.append(Column(type_of(kind), alias, name))
                case [str(kind), constant]:
                    made.append(Literal(type_of(kind), _constant_of(constant)))
                case [str(kind), str(function), int(count)] if 0 <= count <= len(made):
                    arguments = tuple(made[len(made) - count :])
                    del made[len(made) - count :]
                    made.append(Call(type_of(kind), function, arguments))
                case _:
                    raise ValueError(f"{node!r} is not a node of an expression")
        (found,) = made
        # What is made of a bound expression adds some levels, and far from as many again.
        if found.depth > 2 * MOST_DEPTH:
            raise ValueError(f"an expression cannot nest {found.depth} calls: the limit is {2 * MOST_DEPTH}")
        if not isinstance(found, cls):
            raise ValueError(f"{found.text()!r} is not a valid {cls.__name__}")
        return found

    def _own_json(self) -> list[Any]:
        raise NotImplementedError

    def children(self) -> tuple[Expression, ...]:
        """The expressions this one is made of, left to right."""
        return ()

    def walk(self) -> Iterator[Expression]:
        """This expression and everything under it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    @property
    def depth(self) -> int:
        """The depth of nested calls."""
        return 0

    def columns(self) -> frozenset[Column]:
        """Every column the expression reads."""
        return frozenset()

    def aliases(self) -> frozenset[str]:
        """Every source the expression reads."""
        return frozenset()

    def text(self) -> str:
        """A canonical text: equal texts mean equal expressions."""
        raise NotImplementedError


@dataclass(frozen=True)
class Column(Expression):
    """A column of a source; the pseudo-column `_ts` of alias '' is the time of the result."""

    alias: str
    name: str

    @override
    def columns(self) -> frozenset[Column]:
        return frozenset((self,))

    @override
    def aliases(self) -> frozenset[str]:
        return frozenset((self.alias,))

    @override
    def text(self) -> str:
        return f"{self.alias}.{self.name}" if self.alias else self.name

    @override
    def _own_json(self) -> list[Any]:
        return [self.alias, self.name, type_text(self.type)]


def is_result_time(expression: Expression) -> bool:
    """Whether an expression is the pseudo-column of the result's time."""
    return isinstance(expression, Column) and not expression.alias and expression.name == TIME_COLUMN


@dataclass(frozen=True)
class Literal(Expression):
    """A constant, as the Python value that Arrow accepts for `type`; None is NULL."""

    value: Any

    @override
    def text(self) -> str:
        return f"{self.value!r}::{self.type}"

    @override
    def _own_json(self) -> list[Any]:
        return [type_text(self.type), _constant_json(self.value, self.type)]


_CONSTANTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "float": (float, repr, float),
    "decimal": (Decimal, str, Decimal),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
}
"""How constants are written that JSON has no values for, by the name of their kind."""


def _constant_json(value: Any, kind: pa.DataType) -> Any:
    if value is None or type(value) in (bool, int, str) or (type(value) is float and isfinite(value)):
        return value
    for name, (of, write, _) in _CONSTANTS.items():
        if type(value) is of:
            return {name: write(value)}
    if type(value) is timedelta:
        return {"microseconds": value // timedelta(microseconds=1)}
    if type(value) is datetime and value.tzinfo is None:
        return {"datetime": value.isoformat()}
    batch = pa.record_batch([pa.array([value], kind)], [""])
    written = (batch.schema.serialize(), batch.serialize())
    return {"arrow": [base64.b64encode(part.to_pybytes()).decode() for part in written]}


def _constant_of(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    ((name, value),) = written.items()
    if name == "microseconds":
        return timedelta(microseconds=value)
    if name == "datetime":
        return datetime.fromisoformat(value)
    if name == "arrow":
        schema, batch = (pa.py_buffer(base64.b64decode(part)) for part in value)
        return pa.ipc.read_record_batch(batch, pa.ipc.read_schema(schema)).column(0)[0].as_py()
    return _CONSTANTS[name][2](value)


@dataclass(frozen=True, eq=False)
class Call(Expression):
    """A function or operator of the catalogue in `evaluate`, applied to arguments.

    A long sum is a deep tree: to compare, hash or ship one takes no recursion.
    """

    function: str
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self.__dict__["_depth"] = 1 + max((argument.depth for argument in self.arguments), default=0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        return self is other or (self.type == other.type and self._known == other._known)

    def __hash__(self) -> int:
        return hash(self._known[2])

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the nodes, each behind those that it is made of."""
        nodes, waiting = list[Any](), list[Expression]([self])
        while waiting:
            node = waiting.pop()
            nodes.append((node.type, node.function, len(node.arguments)) if isinstance(node, Call) else node)
            waiting += node.children()
        return _call_of, (nodes[::-1],)

    @property
    @override
    def depth(self) -> int:
        return int(self.__dict__["_depth"])

    @override
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    @override
    def columns(self) -> frozenset[Column]:
        return self._known[0]

    @override
    def aliases(self) -> frozenset[str]:
        return self._known[1]

    @override
    def text(self) -> str:
        return self._known[2]

    @override
    def _own_json(self) -> list[Any]:
        return [type_text(self.type), self.function, len(self.arguments)]

    # Signatures ask for these of every condition, state by state, whenever a plan is compiled.
    @cached_property
    def _known(self) -> tuple[frozenset[Column], frozenset[str], str]:
        # What is below is found first, so that a long sum does not recurse once for each of its terms.
        below, waiting = list[Call](), [self]
        while waiting:
            call = waiting.pop()
            below.append(call)
            waiting += [one for one in call.arguments if isinstance(one, Call) and "_known" not in one.__dict__]
        for call in reversed(below[1:]):
            call.__dict__["_known"] = call._read_off()
        return self._read_off()

    def _read_off(self) -> tuple[frozenset[Column], frozenset[str], str]:
        columns = frozenset[Column]().union(*[argument.columns() for argument in self.arguments])
        aliases = frozenset[str]().union(*[argument.aliases() for argument in self.arguments])
        text = f"{self.function}({', '.join([argument.text() for argument in self.arguments])})"
        return columns, aliases, f"{text}::{self.type}" if self.function in ("cast", "try_cast") else text


def kept_with_call(test: Callable[[Call], bool]) -> Callable[[Expression], bool]:
    """Make a test of calls, false of other expressions, that is made once of each call and kept with it.

    >>> asked = kept_with_call(lambda call: print(call.text()) or True)
    >>> call = Call(pa.int64(), "abs", (Column(pa.int64(), "A", "k"),))
    >>> asked(call), asked(call), asked(call.arguments[0])
    abs(A.k)
    (True, True, False)
    """

    def asked(expression: Expression) -> bool:
        if not isinstance(expression, Call):
            return False
        kept = expression.__dict__.setdefault("_tests", {})
        if test not in kept:
            kept[test] = test(expression)
        return bool(kept[test])

    return update_wrapper(asked, test)


def _call_of(nodes: list[Any]) -> Expression:
    made = list[Expression]()
    for node in nodes:
        if isinstance(node, Expression):
            made.append(node)
        else:
            kind, function, count = node
            arguments = tuple(made[len(made) - count :])
            del made[len(made) - count :]
            made.append(Call(kind, function, arguments))
    return made[0]


SIGNS = {
    "or": "or", "and": "and", "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%",
}  # fmt: skip
LEVELS = (
    ("or",),
    ("and",),
    ("eq", "ne", "lt", "le", "gt", "ge"),
    ("add", "sub"),
    ("mul", "div", "mod"),
)
"""From those that bind least to those that bind most."""


def infix(expression: Expression) -> str:
    """The expression with its operators between their operands, and parentheses where they are needed.

    >>> import pyarrow as pa
    >>> v, two = Column(pa.int64(), "A", "v"), Literal(pa.int64(), 2)
    >>> infix(Call(pa.bool_(), "gt", (Call(pa.int64(), "mul", (Call(pa.int64(), "add", (v, two)), two)), two)))
    '(A.v + 2) * 2 > 2'
    >>> infix(Literal(pa.duration("us"), timedelta(hours=1))), infix(Literal(pa.date32(), date(2024, 2, 29)))
    ('1 h', "'2024-02-29'")
    """
    match expression:
        case Column():
            return expression.text()
        case Literal():
            return _value_text(expression.value)
        case Call(_, function, (left, right)) if function in SIGNS:
            own = _level(function)
            return f"{_inner(left, own)} {SIGNS[function]} {_inner(right, own + 1)}"
        case Call(_, "not", (inner,)):
            return f"not {_inner(inner, len(LEVELS))}"
        case Call(_, "between", (value, low, high)):
            within = _level("add")
            return f"{_inner(value, within)} between {_inner(low, within)} and {_inner(high, within)}"
        case Call(_, "in", (value, *among)):
            return f"{_inner(value, _level('add'))} in ({', '.join(map(infix, among))})"
        case Call(_, function, arguments):
            return f"{function}({', '.join(map(infix, arguments))})"
    return expression.text()


def _value_text(value: object) -> str:
    """Write a constant as in a query, and a length of time in a unit that fits."""
    match value:
        case None:
            return "NULL"
        case timedelta():
            return span_text(value // timedelta(microseconds=1))
        case date() | time():
            return f"'{value}'"
        case Decimal():
            return str(value)
    return repr(value)


def conjunction(conditions: tuple[Expression, ...]) -> str:
    """Conditions that all must hold, in order of text; '' for none.

    >>> conjunction(())
    ''
    """
    return " and ".join(sorted(_inner(c, _level("and") if len(conditions) > 1 else 0) for c in conditions))


def _level(function: str) -> int:
    return next(at for at, functions in enumerate(LEVELS) if function in functions)


def _inner(expression: Expression, least: int) -> str:
    binary = isinstance(expression, Call) and expression.function in SIGNS and len(expression.arguments) == 2
    text = infix(expression)
    return f"({text})" if binary and isinstance(expression, Call) and _level(expression.function) < least else text
