"""Typing rules of functions whose arguments are of kinds that differ from place to place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Literal as OneOf

import pyarrow as pa

from midstream.expr.coerce import cast, plain, unify
from midstream.expr.expression import Expression, Literal
from midstream.expr.kernels import pattern
from midstream.expr.kernels.date_functions import known_zone
from midstream.expr.rules import Arguments, Rule, need, whole_number, written, wrong
from midstream.expr.types import BOOLEAN, DOUBLE, DURATION, INT64, TEXT, TIMES, TIMESTAMP, TIMESTAMPTZ, family

Kind = OneOf["text", "whole", "real", "moment", "word", "pattern"]
"""What an argument is: a text, a whole number, a DOUBLE, a date or timestamp; or a constant text, or one that is a
regular expression.
"""


def shaped(result: pa.DataType | None, *kinds: Kind) -> Rule:
    """A rule that takes arguments of these kinds, the last of which may be left out where it is for several; the result
    is of the type of the first one where no other is said.

    >>> from midstream.expr.coerce import literal
    >>> shaped(None, "text", "whole")((literal("abc"), literal(2)))[1][1].type
    DataType(int64)
    """

    def rule(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        fitted = tuple(_AS[kind](argument) for kind, argument in zip(kinds, arguments, strict=False))
        return result or fitted[0].type, fitted

    return rule


def _text(argument: Expression) -> Expression:
    return cast(need(argument, frozenset({"text"}), "a text function"), TEXT)


def _word(argument: Expression) -> Expression:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise wrong("this argument must be a constant string", "write a string in quotes")
    return argument


def _pattern(argument: Expression) -> Expression:
    pattern.check(str(getattr(_word(argument), "value", "")))
    return argument


def _moment(argument: Expression) -> Expression:
    moment = need(argument, TIMES, "a function of times")
    return cast(moment, TIMESTAMP) if family(moment.type) in ("date", "null") else moment


_AS: dict[str, Callable[[Expression], Expression]] = {
    "text": _text,
    "whole": lambda argument: cast(whole_number(argument, "a function of whole numbers"), INT64),
    "real": lambda argument: cast(need(argument, frozenset({"integer", "decimal", "float"}), "a number"), DOUBLE),
    "moment": _moment,
    "word": _word,
    "pattern": _pattern,
}


def groups(rule: Rule) -> Rule:
    """The rule of a text, a pattern and the number of one of its groups, which is a constant, too."""

    def checked(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        type, (text, expression, group) = rule(arguments)
        if not isinstance(group, Literal) or not isinstance(expression, Literal) or group.value is None:
            raise wrong("the number of the group must be a constant", "write the number itself, such as 1")
        pattern.check_group(expression.value, group.value)
        return type, (text, expression, group)

    return checked


def rewritten(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A text, a pattern, what a match is replaced by, and perhaps options."""
    type, (text, *constants) = shaped(TEXT, "text", "pattern", "word", "word")(arguments)
    pattern.check_replacement(*(str(constant.value) for constant in constants if isinstance(constant, Literal)))
    return type, (text, *constants)


def cut_to(units: tuple[str, ...]) -> Rule:
    """A unit, which is one of these, and a date or timestamp; the result is a timestamp."""

    def rule(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        unit, *moments = arguments
        if getattr(unit, "value", None) not in units:
            raise wrong(f"unknown unit {getattr(unit, 'value', None)!r}", f"use one of: {', '.join(units)}")
        fitted = tuple(_moment(moment) for moment in moments)
        first = fitted[0].type
        return INT64 if len(fitted) > 1 else pa.timestamp("us", first.tz), (unit, *fitted)

    return rule


def bucket(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A width above zero, a moment, and the constant moment at which one of the buckets begins."""
    width, moment, origin = arguments[0], _moment(arguments[1]), arguments[2]
    if not isinstance(width, Literal) or family(width.type) != "duration" or not width.value > timedelta(0):
        raise wrong("buckets must have a fixed width", "write TIME_BUCKET(INTERVAL 10 MINUTES, ts)")
    if not isinstance(origin, Literal) or family(origin.type) not in TIMES:
        remedy = "write a constant, such as TIMESTAMP '1970-01-01', or INTERVAL 5 MINUTES"
        raise wrong("buckets must begin at a constant time", remedy)
    kind = pa.timestamp("us", moment.type.tz)
    return kind, (width, cast(moment, kind), cast(cast(origin, TIMESTAMP), kind))


MOST_WINDOWS = 10_000
"""A row may be in at most so many windows of HOP or CUMULATE; it is kept once for each."""


def windows(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A moment, the constant step and size of windows, and perhaps how far they are moved; the result is a list."""
    moment, *given = _moment(arguments[0]), *arguments[1:]
    durations = [one for one in given if isinstance(one, Literal) and family(one.type) == "duration"]
    none, lengths = timedelta(0), [one.value for one in durations]
    if len(lengths) < len(given) or min(lengths[:2]) <= none or any(moved < none for moved in lengths[2:]):
        raise wrong(
            "the windows must have a fixed length",
            "write durations such as INTERVAL '10' MINUTES: first the step, then the size",
        )
    if (count := lengths[1] // lengths[0]) > MOST_WINDOWS:
        raise wrong(
            f"each row would be in {count:,} windows, which is too many",
            f"write a longer step: a row may be in at most {MOST_WINDOWS:,} windows",
        )
    kind = pa.timestamp("us", moment.type.tz)
    moved = durations[2:] or [Literal(DURATION, none)]
    return pa.large_list(kind), (cast(moment, kind), *durations[:2], *moved)


def growing_windows(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A moment, and the step and size of windows that cumulate."""
    type, fitted = windows(arguments)
    step, size = (one.value for one in fitted[1:3] if isinstance(one, Literal))
    if size % step:
        raise wrong("the size of CUMULATE is not a multiple of its step", "make the size a multiple of the step")
    return type, fitted


def zoned(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """The name of a zone, which is a constant, and a moment: one that has a zone loses it, any other gets one."""
    zone, moment = arguments[0], _moment(arguments[1])
    if not isinstance(zone, Literal) or not isinstance(zone.value, str) or not known_zone(zone.value):
        what = repr(zone.value) if isinstance(zone, Literal) else "an expression"
        raise wrong(f"{what} is not a time zone", "name a time zone, such as 'Europe/Berlin', 'UTC' or '+02:00'")
    return (TIMESTAMP if moment.type.tz else TIMESTAMPTZ), (zone, moment)


def bits(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """Integers of one type, which is also the result's."""
    unified = unify(tuple(need(a, frozenset({"integer"}), "bits") for a in arguments))
    if family(unified[0].type) == "boolean":
        unified = tuple(cast(a, INT64) for a in unified)  # They are all NULL.
    if family(unified[0].type) != "integer":
        raise wrong(
            "a bitwise operator cannot combine a UBIGINT with a signed integer",
            "CAST one operand to the type of the other",
        )
    return unified[0].type, unified


def signs(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A number; the result is -1, 0 or 1."""
    return pa.int8(), (plain(need(arguments[0], frozenset({"integer", "decimal", "float"}), "a sign")),)


def tests(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A DOUBLE; the result is a condition."""
    return BOOLEAN, shaped(DOUBLE, "real")(arguments)[1]


def separated(arguments: Arguments) -> tuple[pa.DataType, Arguments]:
    """A separator and values of any plain type as texts."""
    return TEXT, tuple(_text(a) if family(a.type) in ("text", "null") else written(a) for a in arguments)
