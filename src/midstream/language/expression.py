"""Typed scalar expressions over the columns of one or more sources: frozen values.

`Expression.text` is canonical and keeps expressions apart; `infix` is how a reader would write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
from typing_extensions import override

from midstream.model.words import span_text

TIME_COLUMN = "_ts"
"""The pseudo-column that names a result's time when a query selects it."""


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree; `type` is the Arrow type of its value."""

    type: pa.DataType

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
        """How many calls stand one in the other."""
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


def _call_of(nodes: list[Any]) -> Expression:
    """Rebuild a call from its nodes, as `Call.__reduce__` lists them."""
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
    """A constant as it is written in a query, but for lengths of time, which are told in a unit that fits."""
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
