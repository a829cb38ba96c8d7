"""Arithmetic of whole numbers in a type that surely holds the result: INT in BIGINT, BIGINT in DECIMAL(38).

Databases differ here: DuckDB raises an error where a sum is too great for the type of its operands, Spark raises one
or wraps around. A stream has nobody to raise an error to, so the result has room instead.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as is_

from midstream.expr.coerce import cast, literal, plain, unify
from midstream.expr.expression import Call, Expression, Literal
from midstream.expr.failing import reach
from midstream.expr.functions import SYMBOLS, call, function_of
from midstream.expr.types import INT64, WIDEST, family
from midstream.model.errors import LanguageError

_WIDENED = frozenset({"add", "sub", "mul", "neg", "abs"})


def widened_call(function: str, *arguments: Expression) -> Expression:
    """Apply a function to arguments by `call`; arithmetic of whole numbers gets a wider type.

    Raises LanguageError, without a place, for constants of which it has no value, such as `1 // 0`.

    >>> from midstream.expr.expression import Column
    >>> n, big = Column(pa.int32(), "A", "n"), Column(pa.int64(), "A", "big")
    >>> [widened_call("mul", one, literal(10**9)).type for one in (n, big)]
    [DataType(int64), Decimal128Type(decimal128(38, 0))]
    """
    if function == "round" and arguments and is_.is_unsigned_integer(arguments[0].type):
        # As in DuckDB: one that is rounded up to tens may be greater than its type has.
        arguments = (cast(arguments[0], WIDEST if is_.is_uint64(arguments[0].type) else INT64), *arguments[1:])
    found = _widened(function, *arguments)
    constants = all(isinstance(a, Literal) and a.value is not None for a in arguments)
    fails = function_of(function).fails is not None
    if constants and isinstance(found, Literal) and found.value is None and fails:
        shown = ", ".join(str(a.value) for a in arguments if isinstance(a, Literal))
        raise LanguageError(
            f"{SYMBOLS.get(function, function.upper())!r} has no value for {shown}",
            remedy="correct the values, or write NULL instead of the call",
        )
    return found


def _widened(function: str, *arguments: Expression) -> Expression:
    if function not in _WIDENED or not arguments or not all(family(a.type) == "integer" for a in arguments):
        return call(function, *arguments)
    if all(isinstance(a, Literal) and a.value is not None for a in arguments):
        return literal(_VALUES[function](*(a.value for a in arguments if isinstance(a, Literal))))
    unified = unify(arguments)
    if family(unified[0].type) != "integer":
        return call(function, *arguments)
    return Call(_result(function, tuple(plain(a) for a in arguments)), function, unified)


_VALUES: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "abs": abs,
}


def _result(function: str, given: tuple[Expression, ...]) -> pa.DataType:
    """BIGINT where no operand is wider than 32 bits and the result fits, else DECIMAL(38)."""
    narrow = all(_bits(a) <= 32 for a in given)
    fits = reach(Call(WIDEST, function, given)) < 2**63
    return INT64 if narrow and fits else WIDEST


def _bits(argument: Expression) -> int:
    if isinstance(argument, Literal):
        return 32 if argument.value is None or abs(argument.value) < 2**31 else 64
    return int(argument.type.bit_width)
