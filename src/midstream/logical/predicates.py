"""Conditions classified by kind: filters on one source; equalities, bands and all others between sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from midstream.expr.coerce import cast, literal
from midstream.expr.expression import Call, Expression
from midstream.expr.functions import always, asks_user, call
from midstream.expr.linear import EXACT, Sum, linear, widens
from midstream.expr.types import DOUBLE, INT64, WIDEST, family
from midstream.logical.query import BandPredicate, EquiPredicate, Predicate

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_SLACK = Fraction(16, 2**52)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that AND binds together, left to right; the constant TRUE is left out."""
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    elif not always(condition):
        yield condition


def classify(condition: Expression) -> tuple[tuple[tuple[str, Expression], ...], tuple[Predicate, ...]]:
    """The selections (by alias; '' where no column is read) and the predicates of a condition, in the text's order.

    >>> import pyarrow as pa
    >>> from midstream.expr.expression import Column
    >>> from midstream.expr.functions import call
    >>> a, b = Column(pa.int64(), "A", "k"), Column(pa.int64(), "B", "k")
    >>> [type(p).__name__ for p in classify(call("eq", a, b))[1]]
    ['EquiPredicate']
    """
    selections: list[tuple[str, Expression]] = []
    predicates: list[Predicate] = []
    for conjunct in conjuncts(condition):
        aliases = conjunct.aliases()
        if len(aliases) < 2:
            selections.append((next(iter(aliases), ""), conjunct))
        else:
            predicates.append(predicate(conjunct))
    return tuple(selections), tuple(predicates)


def predicate(conjunct: Expression) -> Predicate:
    """The predicate of a conjunct over two or more sources, of the best kind it fits."""
    if asks_user(conjunct):
        return Predicate(
            conjunct
        )  # No key and no band: rows are neither spread nor sorted by what may take long or raise.
    if isinstance(conjunct, Call) and conjunct.function == "eq":
        left, right = conjunct.arguments
        if len(left.aliases()) == len(right.aliases()) == 1 and left.aliases() != right.aliases():
            return EquiPredicate(conjunct, *_keys(left, right))
    if isinstance(conjunct, Call) and conjunct.function == "not":
        inner = conjunct.arguments[0]
        sides = inner.arguments if isinstance(inner, Call) and inner.function == "distinct" else ()
        if (
            sides
            and family(sides[0].type) not in ("binary", "other", "null")
            and len(sides[0].aliases()) == len(sides[1].aliases()) == 1
            and len(conjunct.aliases()) == 2
        ):
            left, right = map(_key_with_null, sides)
            return EquiPredicate(call("eq", left, right), left, right)
    return band(conjunct) or Predicate(conjunct)


def _keys(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """The sides of an equality as keys: where one is of integers, made wider for the other's sake, as these integers.

    A value of the other that is none of them is equal to none.
    """
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Call) and one.function == "cast" and one.type == WIDEST:
            (narrow,) = one.arguments
            if family(narrow.type) == "integer":
                keys = narrow, Call(narrow.type, "try_cast", (other,))
                return keys if one is left else keys[::-1]
    return left, right


def _key_with_null(side: Expression) -> Expression:
    """Return a side of IS NOT DISTINCT FROM as a string that is never NULL, so that NULL equals NULL."""
    if family(side.type) == "float":
        side = call("add", cast(side, DOUBLE), literal(0.0))  # Zero has one sign then.
    return call("coalesce", call("join", literal("="), side), literal(""))


@dataclass(frozen=True)
class _Bound:
    """`low <= terms of total <= high`; with `strict` the ends are excluded."""

    total: Sum
    low: Fraction | None
    high: Fraction | None
    strict: bool = False


def band(conjunct: Expression) -> BandPredicate | None:
    """The band predicate of a condition, if it bounds `left - right` with each side over exactly one source.

    Both sides are BIGINT (whole numbers; dates and times as microseconds) or both DOUBLE. The bounds are a superset:
    with doubles they are a few units in the last place of the greatest constant wider, and a search must allow
    as much for the sums it forms. NaN sorts last on both sides; a band that is open on one end must also give every
    pair with a NaN, for NaN is the greatest number and a difference with it is NaN.

    >>> from midstream.expr.expression import Column
    >>> from midstream.expr.coerce import literal
    >>> a, b = Column(pa.int64(), "A", "x"), Column(pa.int64(), "B", "x")
    >>> found = band(call("lt", call("abs", call("sub", a, b)), literal(5)))
    >>> (found.left.text(), found.right.text(), found.low, found.high)
    ('A.x', 'B.x', -4, 4)
    """
    if len(conjunct.aliases()) != 2 or not isinstance(conjunct, Call):
        return None
    found: _Bound | None = None
    for bound in _bounds(conjunct):
        if bound is None or (found is not None and found.total.key() != bound.total.key()):
            return None
        found = bound if found is None else _both(found, bound)
    return None if found is None else _build(conjunct, found)


def _both(one: _Bound, other: _Bound) -> _Bound:
    lows = [b.low for b in (one, other) if b.low is not None]
    highs = [b.high for b in (one, other) if b.high is not None]
    total = replace(one.total, size=max(one.total.size, other.total.size))
    return _Bound(total, max(lows, default=None), min(highs, default=None))


def _bounds(conjunct: Call) -> Iterator[_Bound | None]:
    function, arguments = conjunct.function, conjunct.arguments
    if function == "between":
        yield _compared("ge", arguments[0], arguments[1])
        yield _compared("le", arguments[0], arguments[2])
    elif function in _TURNED:
        left, right = arguments
        inner, turned = _inside_abs(left), _inside_abs(right)
        if inner is None and turned is not None:
            function, left, right, inner = _TURNED[function], right, left, turned
        if inner is not None and not right.columns() and function in ("lt", "le"):
            yield _within(inner, right, strict=function == "lt")
        else:
            yield _compared(function, left, right)
    else:
        yield None


def _inside_abs(expression: Expression) -> Expression | None:
    while isinstance(expression, Call) and expression.function == "cast" and widens(expression):
        expression = expression.arguments[0]
    if isinstance(expression, Call) and expression.function == "abs":
        return expression.arguments[0]
    return None


def _compared(function: str, left: Expression, right: Expression) -> _Bound | None:
    a, b = linear(left), linear(right)
    total = a.minus(b) if a is not None and b is not None else None
    if total is None:
        return None
    end = -total.constant
    return _Bound(
        total,
        end if function in ("gt", "ge", "eq") else None,
        end if function in ("lt", "le", "eq") else None,
        strict=function in ("lt", "gt"),
    )


def _within(difference: Expression, limit: Expression, strict: bool) -> _Bound | None:
    total, reach = linear(difference), linear(limit)
    joint = total.minus(reach) if total is not None and reach is not None else None
    if total is None or joint is None:
        return None
    size = total.constant - joint.constant
    return _Bound(replace(total, size=joint.size), -total.constant - size, -total.constant + size, strict)


def _build(conjunct: Expression, bound: _Bound) -> BandPredicate | None:
    terms = bound.total.terms
    if len(terms) != 2 or terms[0][1].aliases() == terms[1][1].aliases():
        return None
    (first, left), (second, right) = terms
    low, high = bound.low, bound.high
    if first < 0 < second:
        left, right = right, left
    # Where a sign must change, only a double can change it without fail.
    exact = first != second and bound.total.exact and all(_is_exact(t.type) for t in (left, right))
    left, right = (_searchable(t, INT64 if exact else DOUBLE) for t in (left, right))
    if first == second:
        left, right = (left, call("neg", right)) if first > 0 else (call("neg", left), right)
    slack = _SLACK * bound.total.size
    if not exact:
        return BandPredicate(conjunct, left, right, _float(low, -slack), _float(high, slack))
    if any(t.type == pa.timestamp("ns") for e in (left, right) for t in e.walk()):
        # Microseconds cut nanoseconds off: a difference may come out by one too small or too great.
        return BandPredicate(conjunct, left, right, _whole(low, -1, math.floor), _whole(high, 1, math.ceil))
    least = None if low is None else (math.floor(low) + 1 if bound.strict else math.ceil(low))
    most = None if high is None else (math.ceil(high) - 1 if bound.strict else math.floor(high))
    return BandPredicate(conjunct, left, right, least, most)


def _is_exact(type: pa.DataType) -> bool:
    return family(type) in EXACT and type != pa.uint64()


def _float(end: Fraction | None, slack: Fraction) -> float | None:
    if end is None:
        return None
    found = float(end + slack)
    return found if not slack else math.nextafter(found, math.inf if slack > 0 else -math.inf)


def _whole(end: Fraction | None, slack: int, cut: Callable[[Fraction], int]) -> int | None:
    return None if end is None else cut(end) + slack


def _searchable(term: Expression, type: pa.DataType) -> Expression:
    if family(term.type) in ("date", "timestamp", "duration"):
        term = Call(INT64, "microseconds", (term,))
    return cast(term, type)
