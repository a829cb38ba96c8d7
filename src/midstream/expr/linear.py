"""Expressions as sums of terms and a constant."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as is_

from midstream.expr.expression import Call, Expression
from midstream.expr.functions import constant
from midstream.expr.types import common, family

EXACT = frozenset({"integer", "date", "timestamp", "duration"})
"""The families whose differences are whole numbers: of units, or of microseconds."""


def is_exact(type: pa.DataType) -> bool:
    """Whether sums of this type are formed without rounding and are whole numbers.

    >>> is_exact(pa.int64()), is_exact(pa.decimal128(38, 0)), is_exact(pa.float64())
    (True, True, False)
    """
    return family(type) in EXACT or (family(type) == "decimal" and type.scale == 0)


_WIDENING = {
    "integer": frozenset({"integer", "decimal", "float"}),
    "decimal": frozenset({"decimal", "float"}),
    "float": frozenset({"float"}),
    "date": frozenset({"timestamp"}),
    "timestamp": frozenset({"timestamp"}),
    "duration": frozenset({"duration"}),
}
DAY = 86_400_000_000


@dataclass(frozen=True)
class Sum:
    """Signed terms, each over one source, and a constant; dates and times count in microseconds.

    `size` is the greatest constant on the way, `exact` says whether the sum was formed without rounding, and `unit`
    how many microseconds one unit of the expression stands for: 1, except for a difference of dates, which counts days.
    """

    terms: tuple[tuple[int, Expression], ...] = ()
    constant: Fraction = Fraction(0)
    size: Fraction = Fraction(0)
    exact: bool = True
    unit: int = 1

    def minus(self, other: Sum, sign: int = -1) -> Sum | None:
        """The difference (or, by sign, the sum); None if the two count in different units."""
        if self.terms and other.terms and self.unit != other.unit:
            return None
        unit = self.unit if self.terms else other.unit
        mine = self.constant if self.terms else self.constant * unit
        other_constant = other.constant if other.terms else other.constant * unit
        constant = mine + sign * other_constant
        return Sum(
            self.terms + tuple((sign * s, e) for s, e in other.terms),
            constant,
            max(self.size, other.size, abs(constant), abs(mine), abs(other_constant)),
            self.exact and other.exact,
            unit,
        )

    def key(self) -> frozenset[tuple[int, str]]:
        """What the terms are, in any order."""
        return frozenset((sign, term.text()) for sign, term in self.terms)


def linear(expression: Expression) -> Sum | None:
    """The expression as a sum; None if it ties several sources together in any other way, or is not a number or time.

    >>> from midstream.expr.expression import Column
    >>> from midstream.expr.coerce import literal
    >>> from midstream.expr.functions import call
    >>> found = linear(call("add", Column(pa.int64(), "A", "x"), literal(5)))
    >>> (found.terms[0][1].text(), int(found.constant))
    ('A.x', 5)
    """
    if family(expression.type) not in _WIDENING:
        return None
    if not expression.columns():
        return _constant(expression)
    found = _parts(expression)
    if found is None and len(expression.aliases()) == 1:
        return Sum(((1, expression),), exact=is_exact(expression.type))
    return found


def _parts(expression: Expression) -> Sum | None:
    """Return the sum an operator forms; None if it forms none, or more than one term of a single source."""
    if not isinstance(expression, Call):
        return None
    arguments, type = expression.arguments, expression.type
    single = len(expression.aliases()) == 1
    if expression.function == "cast":
        inner = linear(arguments[0])
        if inner is None or not widens(expression):
            return None
        return Sum(inner.terms, inner.constant, inner.size, inner.exact and is_exact(type), inner.unit)
    if expression.function == "neg":
        return Sum().minus(inner) if (inner := linear(arguments[0])) is not None and type != pa.float32() else None
    if expression.function not in ("add", "sub") or type == pa.float32():
        return None
    if single and all(a.columns() for a in arguments):
        return None
    left, right = (_days(a, type) for a in arguments)
    if left is None or right is None:
        return None
    found = left.minus(right, -1 if expression.function == "sub" else 1)
    if found is None:
        return None
    days = family(type) == "integer" and family(arguments[0].type) == "date"
    return Sum(found.terms, found.constant, found.size, found.exact and is_exact(type), DAY if days else found.unit)


def _days(argument: Expression, type: pa.DataType) -> Sum | None:
    found = linear(argument)
    if found is not None and family(type) == "date" and family(argument.type) == "integer":
        return None if found.terms else Sum(constant=found.constant * DAY, size=found.size * DAY)
    return found


def widens(cast: Call) -> bool:
    """Whether a cast keeps every value, except for the last place of a double.

    >>> from midstream.expr.expression import Column
    >>> moment = Column(pa.timestamp("us"), "A", "ts")
    >>> [widens(Call(type, "cast", (moment,))) for type in (pa.timestamp("us", "UTC"), pa.timestamp("s"))]
    [True, False]
    """
    source, target = cast.arguments[0].type, cast.type
    if target == pa.float32() or (family(source) == family(target) == "decimal" and source.scale > target.scale):
        return False
    if is_.is_unsigned_integer(target) and not is_.is_unsigned_integer(source):
        return False
    if family(source) == family(target) == "timestamp" and source.unit != target.unit:
        return common(source, target) in (target, pa.timestamp(target.unit, "UTC"))
    return family(target) in _WIDENING.get(family(source), ())


def _constant(expression: Expression) -> Sum | None:
    value = constant(expression)
    if isinstance(value, datetime):
        zero = datetime(1970, 1, 1, tzinfo=value.tzinfo)
        value = (value - zero) // timedelta(microseconds=1)
    elif isinstance(value, date):
        value = (value - date(1970, 1, 1)).days * DAY
    elif isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    if not isinstance(value, int | float | decimal.Decimal) or not math.isfinite(value):
        return None
    number = Fraction(value)
    return Sum(constant=number, size=abs(number), exact=is_exact(expression.type))
