"""The catalogue: every function and operator of the language, with its typing rule and its kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr import failing, rules
from midstream.expr.coerce import scalar
from midstream.expr.expression import Call, Expression, Literal
from midstream.expr.function import MANY, Function, fixed
from midstream.expr.kernels import cast, date_functions, json, logic, number, pattern, text
from midstream.expr.kernels.datum import Datum, Values, lift
from midstream.expr.nested import NESTED
from midstream.expr.rules import Rule, counted
from midstream.expr.scalar_function import ScalarFunction, brought
from midstream.expr.shaped_rules import bits as of_bits
from midstream.expr.shaped_rules import (
    bucket,
    cut_to,
    groups,
    growing_windows,
    rewritten,
    separated,
    shaped,
    signs,
    tests,
    windows,
    zoned,
)
from midstream.expr.types import BOOLEAN, DOUBLE, INT64, TEXT, TIMESTAMP, TIMESTAMPTZ, family
from midstream.expr.user_predicates import needed
from midstream.model.errors import LanguageError, MidstreamError

_REALS = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "degrees": np.degrees, "radians": np.radians, "cbrt": np.cbrt,
}  # fmt: skip
_TESTS = {"isnan": pc.is_nan, "isinf": pc.is_inf}


def _failing(
    count: int, rule: Rule, kernel: Callable[..., Datum], fails: Callable[[Call], bool] = lambda call: True
) -> Function:
    # Of constants for which the function has a value, a call cannot fail.
    return Function(counted(count, count, rule), kernel, fails)


_TEXTS: dict[str, Function] = {
    "replace": _failing(3, shaped(TEXT, "text", "text", "text"), text.replace, failing.replaces_by_row),
    "starts_with": fixed(2, shaped(BOOLEAN, "text", "text"), text.starts_with),
    "ends_with": fixed(2, shaped(BOOLEAN, "text", "text"), text.ends_with),
    "contains": fixed(2, shaped(BOOLEAN, "text", "text"), text.contains),
    "left": fixed(2, shaped(TEXT, "text", "whole"), text.left),
    "right": fixed(2, shaped(TEXT, "text", "whole"), text.right),
    "repeat": _failing(2, shaped(TEXT, "text", "whole"), text.repeat, failing.repeats_often),
    "lpad": _failing(3, shaped(TEXT, "text", "whole", "text"), text.padded(at_front=True)),
    "rpad": _failing(3, shaped(TEXT, "text", "whole", "text"), text.padded(at_front=False)),
    "split_part": fixed(3, shaped(TEXT, "text", "text", "whole"), text.split_part),
    "translate": fixed(3, shaped(TEXT, "text", "text", "text"), text.rows_of(text.translate)),
    "concat_ws": Function(counted(2, MANY, separated), text.concat_ws),
    "reverse": fixed(1, shaped(TEXT, "text"), text.reverse),
    "position": fixed(2, shaped(INT64, "text", "text"), text.position),
    "ascii": fixed(1, shaped(INT64, "text"), text.code_of),
    "chr": _failing(1, shaped(TEXT, "whole"), text.character),
    "md5": fixed(1, shaped(TEXT, "text"), text.md5),
    "sha256": fixed(1, shaped(TEXT, "text"), text.sha256),
    "initcap": fixed(1, shaped(TEXT, "text"), text.capitalized),
    "split": fixed(2, shaped(pa.list_(TEXT), "text", "text"), text.split),
    "json_extract_string": fixed(2, shaped(TEXT, "text", "word"), json.extract_string),
    "json_extract": fixed(2, shaped(TEXT, "text", "word"), json.extract),
    "regexp_like": fixed(2, shaped(BOOLEAN, "text", "pattern"), pattern.matches),
    "regexp_replace": Function(counted(3, 4, rewritten), pattern.replaced),
    "regexp_extract": fixed(3, groups(shaped(TEXT, "text", "pattern", "whole")), pattern.extracted),
}

_TIMES: dict[str, Function] = {
    "date_trunc": fixed(2, cut_to(date_functions.UNITS), date_functions.truncated),
    "time_bucket": fixed(3, bucket, date_functions.bucketed),
    "hop_ends": Function(counted(3, 4, windows), date_functions.hop_ends),
    "cumulate_ends": Function(counted(3, 4, growing_windows), date_functions.cumulate_ends),
    "date_diff": fixed(3, cut_to(date_functions.COUNTED), date_functions.difference),
    "timestampdiff": fixed(3, cut_to(date_functions.COUNTED), date_functions.whole_units),
    "at_time_zone": fixed(2, zoned, date_functions.at_zone),
    "strftime": fixed(2, shaped(TEXT, "moment", "word"), date_functions.formatted),
    "epoch": fixed(1, shaped(DOUBLE, "moment"), date_functions.epoch),
    "epoch_ms": fixed(1, shaped(INT64, "moment"), date_functions.epoch_ms),
    "to_timestamp": _failing(1, shaped(TIMESTAMPTZ, "real"), date_functions.from_seconds),
    "make_timestamp_ms": _failing(1, shaped(TIMESTAMP, "whole"), date_functions.from_ms),
    "as_uuid": _failing(1, shaped(TEXT, "text"), text.uuid),
    "try_uuid": fixed(1, shaped(TEXT, "text"), text.uuid),
    "make_date": _failing(3, shaped(pa.date32(), "whole", "whole", "whole"), date_functions.date_of),
    "last_day": fixed(1, shaped(pa.date32(), "moment"), date_functions.last_day),
    "dayname": fixed(1, shaped(TEXT, "moment"), date_functions.name_of("%A")),
    "monthname": fixed(1, shaped(TEXT, "moment"), date_functions.name_of("%B")),
}


def _sign(type: pa.DataType, value: Datum) -> Datum:
    return pc.cast(pc.sign(value), type, safe=False)


_NUMBERS: dict[str, Function] = {
    **{name: fixed(1, rules.reals, number.real(function)) for name, function in _REALS.items()},
    **{name: fixed(1, tests, lambda _, a, test=test: test(a)) for name, test in _TESTS.items()},
    **{name: fixed(2, of_bits, lambda _, a, b, done=done: done(a, b)) for name, done in number.BITWISE.items()},
    "bit_not": fixed(1, of_bits, lambda _, a: pc.bit_wise_not(a)),
    "shift_right": fixed(2, of_bits, number.shift_right),
    "atan2": fixed(2, rules.reals, lambda type, a, b: lift(np.arctan2, type, a, b)),
    "sign": fixed(1, signs, _sign),
    "trunc": fixed(1, rules.wholes, number.whole(pc.trunc)),
}

MORE: dict[str, Function] = {**_TEXTS, **_TIMES, **_NUMBERS}
"""Each of them by name."""


EVALUABLE, UNLESS_FALSE = "evaluable", "unless_false"
"""Conditions on what may fail: that all arguments can be evaluated; that the one is true, or cannot be evaluated."""
SYMBOLS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "distinct": "IS DISTINCT FROM"}
SYMBOLS |= {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "intdiv": "//", "neg": "-", "join": "||"}
SYMBOLS |= {"json_extract_string": "->>", "json_extract": "->"}
"""How messages name the operators."""


def _real(function: Callable[..., Values]) -> Function:
    return fixed(1, rules.reals, number.real(function))


def _exact(count: int, rule: Rule, kernel: Callable[..., Datum]) -> Function:
    return replace(fixed(count, rule, kernel), fails=failing.overflows)


def _whole(rule: Rule, kernel: Callable[..., Datum]) -> Function:
    return replace(fixed(2, rule, kernel), fails=failing.divides_by_zero)


_LOGARITHMS: dict[str, Callable[..., Values]] = {"ln": np.log, "log2": np.log2, "log10": np.log10}


CATALOGUE: dict[str, Function] = {
    **{
        name: fixed(2, rules.equals if name in ("eq", "ne") else rules.compares, logic.comparison(name))
        for name in sorted(logic.COMPARISONS)
    },
    "between": fixed(3, rules.compares, logic.between),
    "in": Function(counted(2, MANY, rules.compares), logic.is_in),
    "distinct": fixed(2, rules.equals, logic.distinct),
    "and": fixed(2, rules.logical, lambda _, a, b: pc.and_kleene(a, b)),
    "or": fixed(2, rules.logical, lambda _, a, b: pc.or_kleene(a, b)),
    "not": fixed(1, rules.logical, lambda _, a: pc.invert(a)),
    "is_null": fixed(1, rules.anything, lambda _, a: pc.is_null(a)),
    "case": Function(counted(3, MANY, rules.branches), logic.case),
    "coalesce": Function(counted(1, MANY, rules.same), lambda _, *items: pc.coalesce(*items)),
    "nullif": fixed(2, rules.null_if, logic.nullif),
    "greatest": Function(counted(1, MANY, rules.ordered), logic.greatest),
    "least": Function(counted(1, MANY, rules.ordered), logic.least),
    "add": _exact(2, rules.sums("add"), number.arithmetic("add")),
    "sub": _exact(2, rules.sums("sub"), number.arithmetic("sub")),
    "mul": _exact(2, rules.products, number.arithmetic("mul")),
    "mod": _whole(rules.remainders, number.remainder),
    "div": fixed(2, rules.quotients, number.divide),
    "intdiv": _whole(rules.whole_quotients, number.divide_whole),
    "neg": _exact(1, rules.signed, number.arithmetic("neg")),
    "abs": _exact(1, rules.signed, number.arithmetic("abs")),
    "round": Function(counted(1, 2, rules.rounds), number.round_to, failing.rounds_over),
    "round_even": _real(np.rint),
    "floor": fixed(1, rules.wholes, number.whole(pc.floor)),
    "ceil": fixed(1, rules.wholes, number.whole(pc.ceil)),
    "sqrt": _real(np.sqrt),
    "exp": _real(np.exp),
    **{name: _real(function) for name, function in _LOGARITHMS.items()},
    "power": fixed(2, rules.reals, number.power),
    "like": Function(counted(2, 3, rules.patterns), text.like(ignore_case=False)),
    "ilike": Function(counted(2, 3, rules.patterns), text.like(ignore_case=True)),
    "lower": fixed(1, rules.texts, lambda _, a: pc.utf8_lower(a)),
    "upper": fixed(1, rules.texts, lambda _, a: pc.utf8_upper(a)),
    "length": fixed(1, rules.measured, text.length),
    "trim": Function(counted(1, 2, rules.trims), text.trim(pc.utf8_trim)),
    "ltrim": Function(counted(1, 2, rules.trims), text.trim(pc.utf8_ltrim)),
    "rtrim": Function(counted(1, 2, rules.trims), text.trim(pc.utf8_rtrim)),
    "substring": Function(counted(2, 3, rules.positions), text.substring),
    "join": Function(counted(2, MANY, rules.joined), text.join),
    "concat": Function(counted(1, MANY, rules.joined), text.concat),
    **{name: fixed(1, rules.moments, cast.part(name)) for name in cast.PARTS},
    **MORE,
    **NESTED,
    "cast": Function(rules.anything, cast.cast, failing.cast_fails),
    "try_cast": Function(rules.anything, cast.cast),
    EVALUABLE: Function(rules.anything, rules.without_kernel),
    UNLESS_FALSE: Function(rules.anything, rules.without_kernel),
    "microseconds": Function(lambda arguments: (INT64, arguments), cast.microseconds),
    "moment": Function(lambda arguments: (TIMESTAMP, arguments), cast.moment),
}
"""Every function by name. `cast` is typed by `coerce.cast`; `microseconds` is for band predicates and times
of rows, which `moment` shows. `EVALUABLE` and `UNLESS_FALSE` look at what failed below them, and have no kernel.
"""


INTERNAL = frozenset(
    {
        "microseconds",
        "moment",
        EVALUABLE,
        UNLESS_FALSE,
        "cast",
        "try_cast",
        "position",
        "make_timestamp_ms",
        "join",
        "round_even",
        "as_uuid",
        "try_uuid",
    }
    | NESTED.keys()
)
"""Names that nobody writes."""


def known_function(name: str) -> Function | None:
    """Find a function of the catalogue, or one with a file of its own; None where there is none of this name."""
    known = CATALOGUE.get(name)
    if known is not None:
        return known
    found = brought_functions().get(name)
    return None if found is None else Function(found.rule, found.kernel, (lambda _: True) if found.can_fail else None)


def brought_functions() -> Mapping[str, ScalarFunction]:
    """Find the functions with files of their own, by name; raises where one has a name of the catalogue."""
    found = brought()
    for name in found.keys() & CATALOGUE.keys():
        kind = type(found[name])
        raise MidstreamError(
            f"midstream already has a function {name!r}",
            place=f"function {name}, {kind.__module__}.{kind.__qualname__}",
            remedy="rename the function in the package, or uninstall the package",
        )
    return found


def function_of(name: str) -> Function:
    """Find a function of the language or a user's predicate; raises a `QueryError` where the name is unknown."""
    known = known_function(name)
    if known is not None:
        return known
    own = needed(name)
    return Function(own.rule, own.kernel)


def predicates_asked(expression: Expression) -> frozenset[str]:
    """Collect the names of the users' predicates that an expression calls."""
    called = {part.function for part in expression.walk() if isinstance(part, Call)}
    return frozenset(name for name in called - CATALOGUE.keys() if name not in brought_functions())


def asks_user(expression: Expression) -> bool:
    """Return whether an expression calls a user's predicate, which may take long and may raise.

    >>> from midstream.expr.coerce import literal
    >>> asks_user(call("not", literal(True)))
    False
    """
    return bool(predicates_asked(expression))


def call(name: str, *arguments: Expression) -> Expression:
    """Apply a function to arguments, typed, with casts put in; computes it at once where all are literals.

    Raises LanguageError, without a place, if the function does not take such arguments.

    >>> from midstream.expr.coerce import literal
    >>> call("add", literal(2), literal(3))
    Literal(type=DataType(int32), value=5)
    """
    function = function_of(name)
    try:
        type, fitted = function.rule(arguments)
    except LanguageError as error:
        word = SYMBOLS.get(name, name.upper())
        raise LanguageError(f"{word!r}: {error.message}", place=error.place, remedy=error.remedy) from error
    # A list or the like is not a literal: it has no hash.
    if fitted and family(type) != "other" and all(isinstance(a, Literal) for a in fitted):
        datum = function.kernel(type, *(scalar(a) for a in fitted if isinstance(a, Literal)))
        with suppress(OverflowError):  # A moment of which Python has no value.
            return Literal(type, datum.as_py())
    return Call(type, name, fitted)


def always(expression: Expression) -> bool:
    """Return whether a condition is the constant TRUE."""
    return isinstance(expression, Literal) and expression.type == BOOLEAN and expression.value is True


def constant(expression: Expression) -> object:
    """Evaluate an expression that reads no column to its Python value.

    >>> constant(Call(INT64, "abs", (Literal(INT64, -5),)))
    5
    """
    return _scalar(expression).as_py()


def _scalar(expression: Expression) -> Datum:
    if isinstance(expression, Call):
        return function_of(expression.function).kernel(expression.type, *(_scalar(a) for a in expression.arguments))
    assert isinstance(expression, Literal)
    return scalar(expression)
