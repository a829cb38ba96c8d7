"""Typing rules: what a function takes, with casts put in, and the type of what it gives."""

from __future__ import annotations

import decimal
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as is_

from midstream.expr.coerce import arithmetic_type, cast, literal, name, plain, unify
from midstream.expr.expression import Call, Expression, Literal
from midstream.expr.types import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT64,
    NUMBERS,
    TEXT,
    TIMES,
    TIMESTAMP,
    WIDEST,
    common,
    decimal_of,
    family,
)
from midstream.model.errors import LanguageError

Arguments = tuple[Expression, ...]
Rule = Callable[[Arguments], tuple[pa.DataType, Arguments]]


def wrong(message: str, remedy: str) -> LanguageError:
    """The error of a type rule; the binder adds its place."""
    return LanguageError(message, remedy=remedy)


def need(argument: Expression, families: frozenset[str], what: str) -> Expression:
    """The argument, plain, if it is of one of the families or NULL."""
    if family(argument.type) not in families | {"null"}:
        raise wrong(
            f"{what} cannot take a {name(argument.type)}",
            f"use a value of type {' or '.join(sorted(families))}",
        )
    return plain(argument)


def counted(least: int, most: int, rule: Rule) -> Rule:
    """A rule that takes so many arguments."""

    def checked(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        if not least <= len(arguments) <= most:
            number = str(least) if least == most else f"{least} to {most}"
            raise wrong(f"the number of arguments must be {number}, not {len(arguments)}", f"give {number}")
        return rule(arguments)

    return checked


def compares(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Arguments of one comparable type."""
    return BOOLEAN, _comparable(unify(arguments, comparing=True))


def _comparable(arguments: Arguments) -> Arguments:
    if family(arguments[0].type) == "other":
        raise wrong(f"values of type {name(arguments[0].type)} cannot be compared", "compare numbers, strings or times")
    return arguments


def equals(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Arguments of one type that are equal or not; lists and structs by what is in them."""
    if not any(map(is_nested, (argument.type for argument in arguments))):
        return compares(arguments)
    shapes = {_shape(argument.type) for argument in arguments if family(argument.type) != "null"}
    if len(shapes) > 1:
        shown = " and ".join(name(argument.type) for argument in arguments)
        raise wrong(f"{shown} cannot be compared", "compare lists or structs with fields of the same names and types")
    return BOOLEAN, tuple(map(key_of, arguments))


def key_of(argument: Expression) -> Expression:
    """The argument as it groups and compares for equality: of a list or struct its bytes."""
    if family(argument.type) == "null":
        return Literal(pa.binary(), None)
    return Call(pa.binary(), "nested_key", (argument,)) if is_nested(argument.type) else argument


def is_nested(type: pa.DataType) -> bool:
    """Whether values of a type are lists or structs, down to values that compare.

    >>> is_nested(pa.list_(pa.struct({"a": pa.int8()}))), is_nested(pa.list_(pa.map_(pa.int8(), pa.int8())))
    (True, False)
    """
    inner = _inner(type)
    return bool(inner) and all(family(one) not in ("other", "null") or is_nested(one) for _, one in inner)


def _inner(type: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if is_.is_struct(type):
        return [(field.name.lower(), field.type) for field in type]
    listed = is_.is_list(type) or is_.is_large_list(type) or is_.is_fixed_size_list(type)
    return [("", type.value_type)] if listed else []


def _shape(type: pa.DataType) -> str:
    if inner := _inner(type):
        return f"{'struct' if is_.is_struct(type) else 'list'}({', '.join(f'{n} {_shape(t)}' for n, t in inner)})"
    plain = type.value_type if is_.is_dictionary(type) else type
    if family(type) == "timestamp":
        return f"timestamp {plain.tz is not None}"
    exact = family(type) in ("decimal", "time", "duration") or is_.is_uint64(plain)
    return str(plain) if exact else family(type)


def logical(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Conditions."""
    return BOOLEAN, tuple(cast(need(a, frozenset({"boolean"}), "a condition"), BOOLEAN) for a in arguments)


def anything(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A test of any one value."""
    return BOOLEAN, arguments


def same(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Arguments of one type, which is also the result's."""
    unified = unify(arguments)
    return unified[0].type, unified


def ordered(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Arguments of one comparable type, which is also the result's."""
    unified = _comparable(unify(arguments))
    return unified[0].type, unified


def branches(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Condition, value, ..., value: the values of one type."""
    chosen = unify((*arguments[1:-1:2], arguments[-1]))
    conditions = logical(arguments[0:-1:2])[1]
    woven = [a for pair in zip(conditions, chosen, strict=False) for a in pair]
    return chosen[0].type, (*woven, chosen[-1])


def null_if(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """The value twice, once as the result and once to compare."""
    value = plain(arguments[0])
    return value.type, (value, *compares(arguments)[1])


def _exact(argument: Expression, joint: pa.DataType) -> Expression:
    """Return an argument of decimal arithmetic, with no more digits than it needs."""
    if isinstance(argument, Literal):
        return cast(argument, joint if argument.value is None else literal(decimal.Decimal(argument.value)).type)
    return cast(argument, decimal_of(argument.type))


def _numbers(function: str, arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    pair = tuple(need(a, NUMBERS, "arithmetic") for a in arguments)
    unified = unify(pair)
    if family(unified[0].type) in ("integer", "float"):
        return unified[0].type, unified
    exact = tuple(_exact(a, unified[0].type) for a in pair)
    found = arithmetic_type(function, exact[0].type, exact[1].type)
    return found, exact if family(found) == "decimal" else tuple(cast(a, found) for a in exact)


def _times(function: str, left: Expression, right: Expression) -> tuple[pa.DataType, Arguments] | None:
    """Sums and differences of dates, timestamps and intervals; None if they are none."""
    kinds = (family(left.type), family(right.type))
    if function == "add" and kinds[0] in ("duration", "integer") and kinds[1] in TIMES:
        turned = _times(function, right, left)
        return turned and (turned[0], turned[1][::-1])
    if kinds == ("duration", "duration"):
        return DURATION, (plain(left), plain(right))
    if kinds[0] in TIMES and kinds[1] == "duration":
        moment = plain(left) if kinds[0] == "timestamp" else cast(left, TIMESTAMP)
        return moment.type, (moment, cast(right, pa.duration(moment.type.unit)))
    if kinds == ("date", "integer") or (kinds == ("date", "decimal") and right.type.scale == 0):
        return pa.date32(), (plain(left), cast(right, pa.int32()))
    if function == "sub" and kinds == ("date", "date"):
        return INT64, (plain(left), plain(right))
    if function == "sub" and kinds[0] in TIMES and kinds[1] in TIMES:
        return DURATION, tuple(cast(a, TIMESTAMP) for a in (left, right))
    return None


def sums(function: str) -> Rule:
    """The rule of + or -."""

    def rule(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        return _times(function, *arguments) or _numbers(function, arguments)

    return rule


def products(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """The rule of *."""
    return _numbers("mul", arguments)


def remainders(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """The rule of %: DOUBLEs if any number is a float, of values rounded to FLOATs where those are the common type."""
    if not any(family(a.type) == "float" for a in arguments):
        return _numbers("mod", arguments)
    if unify(tuple(need(a, NUMBERS, "arithmetic") for a in arguments))[0].type == pa.float32():
        arguments = tuple(cast(a, pa.float32()) for a in arguments)
    return reals(arguments)


def quotients(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """True division: doubles, or floats where both sides fit one."""
    unified = unify(tuple(need(a, NUMBERS, "arithmetic") for a in arguments))
    type = pa.float32() if unified[0].type == pa.float32() else DOUBLE
    return type, tuple(cast(need(a, NUMBERS, "arithmetic"), type) for a in arguments)


def whole_quotients(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Division of whole numbers."""
    given = tuple(whole_number(a, "whole division") for a in arguments)
    if any(family(a.type) == "decimal" for a in given):
        return WIDEST, tuple(cast(a, WIDEST) for a in given)
    return _numbers("mul", given)


def whole_number(argument: Expression, what: str) -> Expression:
    """An argument that has no digits behind the point, in whatever type; a decimal is one if it says so."""
    if family(argument.type) == "decimal" and argument.type.scale == 0:
        return plain(argument)
    return need(argument, frozenset({"integer"}), what)


def without_kernel(*_: object) -> object:
    """The kernel of what is not evaluated by one."""
    raise NotImplementedError


def signed(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A number or interval that may change its sign."""
    argument = need(arguments[0], NUMBERS | {"duration"}, "arithmetic")
    if pa.types.is_unsigned_integer(argument.type):
        argument = cast(argument, common(argument.type, pa.int8()) or INT64)
    argument = cast(argument, INT64) if family(argument.type) == "null" else argument
    return argument.type, (argument,)


def reals(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Doubles."""
    return DOUBLE, tuple(cast(need(a, NUMBERS, "arithmetic"), DOUBLE) for a in arguments)


MOST_PLACES = 300
"""So many places are rounded to at most, behind the point or before it."""
PLACES = f"write the decimal places as a whole number of at most {MOST_PLACES}"


def rounds(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A number and a literal number of places."""
    number = need(arguments[0], NUMBERS, "arithmetic")
    digits = arguments[1] if len(arguments) > 1 else literal(0)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int) or abs(digits.value) > MOST_PLACES:
        raise wrong("ROUND needs a constant number of decimal places", PLACES)
    number = cast(number, DOUBLE) if family(number.type) == "null" else number
    type = number.type
    if family(type) == "decimal":
        scale = min(max(digits.value, 0), type.scale)
        digits = literal(min(digits.value, type.scale))
        type = pa.decimal128(min(type.precision - type.scale + scale + 1, 38), scale)
    return type, (number, digits)


def wholes(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """FLOOR and CEIL: of a decimal a decimal, else a float."""
    number = need(arguments[0], NUMBERS, "arithmetic")
    if family(number.type) == "decimal":
        return pa.decimal128(min(number.type.precision - number.type.scale + 1, 38), 0), (number,)
    type = number.type if family(number.type) == "float" else DOUBLE
    return type, (cast(number, type),)


def texts(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Texts of one type, which is also the result's."""
    unified = unify(tuple(need(a, frozenset({"text"}), "a text function") for a in arguments))
    unified = tuple(cast(a, TEXT) if family(a.type) != "text" else a for a in unified)
    return unified[0].type, unified


def patterns(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A text, a pattern and a literal escape character."""
    if len(arguments) == 3 and not (isinstance(arguments[2], Literal) and len(str(arguments[2].value)) <= 1):
        raise wrong("ESCAPE must be followed by one character", "write one character, such as ESCAPE '!'")
    return BOOLEAN, texts(arguments)[1]


def trims(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A text and literal characters to cut off."""
    if len(arguments) == 2 and not isinstance(arguments[1], Literal):
        raise wrong("TRIM needs constant characters", "write the characters as a string")
    return texts(arguments)


def positions(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Positions in a text."""
    (text,) = texts(arguments[:1])[1]
    return text.type, (text, *(cast(whole_number(a, "a position"), INT64) for a in arguments[1:]))


def joined(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Anything that can be written as text; or binaries only."""
    if all(family(a.type) == "binary" for a in arguments):
        return same(arguments)
    return texts(tuple(plain(a) if family(a.type) == "text" else written(a) for a in arguments))


def written(argument: Expression) -> Expression:
    """A value of any plain type as a text."""
    if family(argument.type) == "other":
        raise wrong(f"a value of type {argument.type} cannot become a string", "use the fields or items of the value")
    return cast(plain(argument), TEXT)


def measured(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A text or binary."""
    return INT64, (
        cast(argument, TEXT)
        if family((argument := need(arguments[0], frozenset({"text", "binary"}), "LENGTH")).type) == "null"
        else argument,
    )


def moments(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A date or timestamp."""
    moment = need(arguments[0], TIMES, "a part of a time")
    return INT64, (cast(moment, TIMESTAMP) if family(moment.type) in ("date", "null") else moment,)
