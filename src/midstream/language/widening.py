"""Arithmetic of whole numbers in a type that surely holds the result: INT in BIGINT, BIGINT in DECIMAL(38).

Databases differ here: DuckDB raises an error where a sum is too great for the type of its operands, Spark raises one
or wraps around. A stream has nobody to raise an error to, so the result has room instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as is_

from midstream.language.coerce import cast, literal, plain, unify
from midstream.language.expression import Call, Expression, Literal
from midstream.language.failing import reach
from midstream.language.functions import AT_EDGES, SYMBOLS, call, function_of
from midstream.language.types import INT64, WIDEST, family
from midstream.model.errors import LanguageError

_WIDENED = frozenset({"add", "sub", "mul", "neg", "abs"})
_IEEE = frozenset({"div", "power", "sqrt", "ln", "log2", "log10"})


def checked_call(function: str, *arguments: Expression, edges: bool = False) -> Expression:
    """A function applied to arguments, as `call` does it, but for arithmetic, that widens or is that of IEEE 754.

    With `edges` its casts too are told apart from NULL where a type does not have their value, as `strict` has them.
    Raises LanguageError, without a place, for constants of which it has no value, such as `1 // 0`.

    >>> from midstream.language.expression import Column
    >>> n, big = Column(pa.int32(), "A", "n"), Column(pa.int64(), "A", "big")
    >>> [checked_call("mul", one, literal(10**9)).type for one in (n, big)]
    [DataType(int64), Decimal128Type(decimal128(38, 0))]
    """
    if edges and function == "round" and arguments and is_.is_unsigned_integer(arguments[0].type):
        # As in DuckDB: one that is rounded up to tens may be greater than its type has.
        arguments = (cast(arguments[0], WIDEST if is_.is_uint64(arguments[0].type) else INT64), *arguments[1:])
    found = strict(_widened(function, *arguments), arguments) if edges else _widened(function, *arguments)
    fails = function_of(function).fails is not None or (edges and function in AT_EDGES)
    constants = all(isinstance(a, Literal) and a.value is not None for a in arguments)
    if constants and isinstance(found, Literal) and found.value is None and fails:
        shown = ", ".join(str(a.value) for a in arguments if isinstance(a, Literal))
        raise LanguageError(
            f"{SYMBOLS.get(function, function.upper())!r} has no value for {shown}",
            remedy="write NULL if you mean that",
        )
    return found


def strict(found: Expression, given: tuple[Expression, ...] = ()) -> Expression:
    """A call that cannot be evaluated where it, or a cast of one of its arguments, gives a NULL that no argument is.

    What was `given` to it stays as it is.

    >>> from midstream.language.expression import Column
    >>> strict(Call(pa.uint8(), "cast", (Column(pa.int8(), "A", "n"),))).text()
    'strict_cast(A.n)::uint8'
    """
    if not isinstance(found, Call):
        return found
    inner = tuple(a if any(a is one for one in given) else _strict_cast(a) for a in found.arguments)
    if any(new is not old for new, old in zip(inner, found.arguments, strict=True)):
        found = replace(found, arguments=inner)
    known = AT_EDGES.get(found.function)
    return replace(found, function=f"strict_{found.function}") if known is not None and known(found) else found


def _strict_cast(one: Expression) -> Expression:
    return strict(one, one.arguments) if isinstance(one, Call) and one.function == "cast" else one


def _widened(function: str, *arguments: Expression) -> Expression:
    if function in _IEEE or (function == "mod" and any(family(a.type) == "float" for a in arguments)):
        return call(f"ieee_{function}", *arguments)
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
