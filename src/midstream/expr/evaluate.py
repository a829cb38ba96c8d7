"""Expressions computed over columns.

Three-valued logic; NaN equals NaN and is the greatest number. What fails (an overflow of the widest type, a bad cast)
is NULL; where that must be told apart, `evaluate_checked` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.coerce import scalar
from midstream.expr.expression import Call, Column, Expression, Literal, kept_with_call
from midstream.expr.functions import EVALUABLE, UNLESS_FALSE, asks_user, function_of, known_function
from midstream.expr.kernels.datum import STORED_AS_NUMBERS, Datum, Mask, build, column_of, valid
from midstream.expr.kernels.exact import scale_of
from midstream.expr.kernels.logic import COMPARISONS, compare_numbers
from midstream.expr.kernels.number import CHECKED
from midstream.expr.types import BOOLEAN, INT64, family


def is_null(datum: Datum) -> Mask | None:
    """Where a datum is NULL; None where it nowhere is."""
    there = valid(datum)
    return None if there is None else ~there


def either(*masks: Mask | None) -> Mask | None:
    """Where any of the masks is true; None, as each of them may be, for nowhere."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found | mask
    return found


Checked = Sequence[tuple[Datum, Mask | None]]


def _decided_by(value: bool) -> Callable[[Checked], Mask | None]:
    """Find where AND (decided by FALSE) or OR (by TRUE) fails: one side fails, and the other does not decide."""

    def failed(sides: Checked) -> Mask | None:
        masks = [mask for _, mask in sides]
        found = either(*masks)
        for datum, mask in sides:
            decides = known_as(datum, value) if mask is None else known_as(datum, value) & ~mask
            found = None if found is None else found & ~decides
        return found

    return failed


def known_as(datum: Datum, value: bool) -> Mask:
    """Where a condition is this very value, and not NULL."""
    if isinstance(datum, pa.Scalar):
        return np.asarray(datum.as_py() is value)
    return np.asarray(pc.fill_null(pc.equal(datum, value), False))


def _case_fails(parts: Checked) -> Mask | None:
    open_, failed = np.asarray(True), np.asarray(False)
    for (condition, asked), (_, taken) in zip(parts[0:-1:2], parts[1:-1:2], strict=True):
        asked, taken = (np.asarray(False) if mask is None else mask for mask in (asked, taken))
        hit = known_as(condition, True) & ~asked
        failed = failed | (open_ & (asked | (hit & taken)))
        open_ = open_ & ~hit & ~asked
    last = parts[-1][1]
    return failed if last is None else failed | (open_ & last)


def _coalesce_fails(parts: Checked) -> Mask | None:
    """COALESCE fails where a value does that comes before the first one which is not NULL, or is that one."""
    open_, failed = np.asarray(True), np.asarray(False)
    for datum, mask in parts:
        if mask is not None:
            failed, open_ = failed | (open_ & mask), open_ & ~mask
        nothing = is_null(datum)
        open_ = open_ & (np.asarray(False) if nothing is None else nothing)
    return failed


LAZY: dict[str, Callable[[Checked], Mask | None]] = {
    "and": _decided_by(False),
    "or": _decided_by(True),
    "case": _case_fails,
    "coalesce": _coalesce_fails,
}
"""Functions that do not need all of their arguments, and where they fail."""


DIGITS_OF_BIGINT = 19

_COMPARING = COMPARISONS | {"between", "in"}


@kept_with_call
def is_whole(call: Call) -> bool:
    """Return whether an expression is arithmetic of whole numbers in decimals of 19 digits or more, or compares it.

    >>> from midstream.expr.expression import Column
    >>> a, e = Column(INT64, "A", "a"), Column(pa.decimal128(9, 2), "A", "e")
    >>> difference = Call(pa.decimal128(38, 0), "sub", (a, a))
    >>> is_whole(difference), is_whole(Call(pa.bool_(), "lt", (difference, difference)))
    (True, True)
    >>> is_whole(Call(pa.bool_(), "between", (difference, a, a)))
    True
    >>> is_whole(a), is_whole(Call(pa.decimal128(38, 2), "sub", (a, e)))
    (False, False)
    """
    if call.function in _COMPARING:
        return any(map(_is_wide, call.arguments)) and all(map(_has_no_point, call.arguments))
    return _is_wide(call)


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield the smallest parts of an expression that are not whole-number calls: columns, literals, other calls."""
    if isinstance(expression, Call) and is_whole(expression):
        for argument in expression.arguments:
            yield from parts(argument)
    else:
        yield expression


def in_64_bits(expression: Call, datum: Callable[[Expression], Datum]) -> Datum | None:
    """The value of an expression that `is_whole`; None where a value in between does not fit into 64 bits.

    `datum` gives the values of its `parts`.
    """
    try:
        if expression.function in _COMPARING:
            narrow = [_narrow(argument, datum) for argument in expression.arguments]
            return function_of(expression.function).kernel(expression.type, *narrow)
        return pc.cast(_narrow(expression, datum), expression.type)
    except pa.ArrowInvalid:
        return None


def _is_wide(expression: Expression) -> bool:
    """Return whether this is arithmetic whose type has all BIGINTs, and no digits behind a point."""
    type = expression.type
    return (
        isinstance(expression, Call)
        and expression.function in CHECKED
        and family(type) == "decimal"
        and type.precision >= DIGITS_OF_BIGINT
        and type.scale == 0
        and all(map(_has_no_point, expression.arguments))
    )


def _has_no_point(expression: Expression) -> bool:
    return family(expression.type) in ("integer", "decimal") and scale_of(expression.type) == 0


def _narrow(expression: Expression, datum: Callable[[Expression], Datum]) -> Datum:
    """Return the value as BIGINT; raises Arrow's error where one does not fit."""
    if isinstance(expression, Call) and _is_wide(expression):
        return CHECKED[expression.function](*(_narrow(argument, datum) for argument in expression.arguments))
    return pc.cast(datum(expression), INT64)


Columns = Callable[[Column], pa.Array]


def evaluate(expression: Expression, column: Columns, rows: int) -> pa.Array:
    """The expression's values for `rows` rows; `column` gives each column it reads, as an array of so many rows.

    >>> from midstream.expr.functions import call
    >>> k = Column(pa.int64(), "A", "k")
    >>> evaluate(call("add", k, k), lambda _: pa.array([1, None]), 2).to_pylist()
    [2, None]
    """
    if expression.__class__ is Column and (known := column(expression)).__class__ is not pa.ChunkedArray:
        return known if known.type == expression.type else known.cast(expression.type)
    found = column_of(_datum(expression, column), rows)
    return found if found.type == expression.type else found.cast(expression.type)


def holds(expression: Expression, column: Columns, rows: int) -> Mask:
    """Where a condition is true: NULL counts as false.

    >>> from midstream.expr.functions import call
    >>> from midstream.expr.coerce import literal
    >>> k = Column(pa.int64(), "A", "k")
    >>> holds(call("gt", k, literal(1)), lambda _: pa.array([1, None, 2]), 3)
    array([False, False,  True])
    """
    found = _holds(expression, column)
    return found if found.ndim else np.full(rows, found)


LARGE = 10_000
"""In a batch of so many rows a condition on strings is evaluated on the rows that others leave. In a smaller one
choosing these rows takes longer.
"""

SAMPLED = 512
"""By so many rows of a batch it is estimated which condition on strings leaves the fewest."""


def all_hold(conditions: Iterable[Expression], batch: pa.RecordBatch) -> Mask:
    """Where every condition on the columns of a batch is true; everywhere if there is none.

    Conditions on numbers come first, on all rows. In a large batch those on strings follow, each on the rows left, the
    most selective one first. A user's predicates come last, in any batch on the rows left.
    """
    mask, large = np.ones(batch.num_rows, np.bool_), batch.num_rows >= LARGE
    for condition in _in_order(conditions, batch) if large else sorted(conditions, key=asks_user):
        if asks_user(condition) or (large and reads_strings(condition)):
            _keep_only(condition, batch, mask)
        else:
            mask &= _in_batch(condition, batch)
    return mask


def hold_in_order(conditions: Iterable[Expression], batch: pa.RecordBatch) -> tuple[Mask, list[int]]:
    """Evaluate each condition on the rows that all conditions before it leave.

    Returns: where every condition is true, and for each condition the rows that it was evaluated for.
    """
    mask, evaluated = np.ones(batch.num_rows, np.bool_), list[int]()
    for condition in conditions:
        left = int(np.count_nonzero(mask))
        evaluated.append(left)
        if left:
            _keep_only(condition, batch, mask)
    return mask, evaluated


def _in_order(conditions: Iterable[Expression], batch: pa.RecordBatch) -> list[Expression]:
    given = list(conditions)
    asked, strings = ([one for one in given if test(one)] for test in (asks_user, reads_strings))
    strings = [one for one in strings if one not in asked]
    if len(strings) > 1:
        sample = batch.slice(0, SAMPLED)
        strings.sort(key=lambda one: np.count_nonzero(_in_batch(one, sample)))
    return [*(one for one in given if one not in asked and one not in strings), *strings, *asked]


def reads_strings(condition: Expression) -> bool:
    """Return whether a condition reads a column that is neither a number nor a time."""
    return not all(pa.types.is_primitive(column.type) for column in condition.columns())


def _keep_only(condition: Expression, batch: pa.RecordBatch, mask: Mask) -> None:
    # Of the rows left, only the columns that the condition reads are gathered.
    if mask.all():
        mask &= _in_batch(condition, batch)
        return
    at = pa.array(np.flatnonzero(mask))
    mask[mask] = holds(condition, lambda column: batch.column(column.name).take(at), len(at))


def _in_batch(condition: Expression, batch: pa.RecordBatch) -> Mask:
    return holds(condition, lambda c: batch.column(c.name), batch.num_rows)


def evaluate_checked(expression: Expression, column: Columns, rows: int) -> tuple[pa.Array, Mask | None]:
    """The expression's values, and where it could not be evaluated: there they mean nothing; None where it could
    everywhere.

    >>> from midstream.expr.expression import Column
    >>> s = Column(pa.string(), "A", "s")
    >>> number = Call(pa.int32(), "cast", (s,))
    >>> evaluate_checked(number, lambda _: pa.array(["7", None, "abc"]), 3)[1]
    array([False, False,  True])
    """
    if not can_fail(expression):
        return evaluate(expression, column, rows), None
    value, failed = _checked(expression, column)
    found = column_of(value, rows)
    found = found if found.type == expression.type else found.cast(expression.type)
    return found, None if failed is None or not failed.any() else np.broadcast_to(failed, rows)


def fails(expression: Expression, column: Columns, rows: int) -> Mask:
    """Where the expression cannot be evaluated."""
    failed = _checked(expression, column)[1]
    return np.broadcast_to(np.False_ if failed is None else failed, rows)


@kept_with_call
def can_fail(call: Call) -> bool:
    """Return whether there may be rows for which an expression cannot be evaluated."""
    if call.function in (EVALUABLE, UNLESS_FALSE):
        return False
    return fails_itself(call) or any(map(can_fail, call.arguments))


def fails_itself(call: Call) -> bool:
    """Whether a call may fail where its arguments do not."""
    # A user's predicate raises where it fails, and that is told with the rows.
    known = known_function(call.function)
    return known is not None and known.fails is not None and known.fails(call)


def _checked(expression: Expression, column: Columns) -> tuple[Datum, Mask | None]:
    if not isinstance(expression, Call) or not can_fail(expression):
        return _datum(expression, column), None
    if _fails_by_digits_only(expression):
        return _whole(expression, column)
    return _applied(expression, [_checked(argument, column) for argument in expression.arguments])


def _whole(expression: Call, column: Columns) -> tuple[Datum, Mask | None]:
    """Evaluate an expression that `is_whole`, without a mask of the rows whose parts could not be evaluated."""
    part = _once(column)
    known = in_64_bits(expression, part)
    return (known, None) if known is not None else _by_types(expression, part)


def _by_types(expression: Expression, part: Callable[[Expression], Datum]) -> tuple[Datum, Mask | None]:
    if not isinstance(expression, Call) or not is_whole(expression):
        return part(expression), None
    return _applied(expression, [_by_types(argument, part) for argument in expression.arguments])


def _applied(expression: Call, found: Sequence[tuple[Datum, Mask | None]]) -> tuple[Datum, Mask | None]:
    function = function_of(expression.function)
    data = [datum for datum, _ in found]
    value = function.kernel(expression.type, *data)
    if expression.function in LAZY:
        return value, LAZY[expression.function](found)
    failed = either(*(mask for _, mask in found))
    if function.fails is not None and (nothing := is_null(value)) is not None:
        given = valid(*data)
        failed = either(failed, nothing if given is None else nothing & given)
    return value, failed


@kept_with_call
def _fails_by_digits_only(call: Call) -> bool:
    """Return whether this is a computation of whole numbers that fails only where a value in between is too great."""
    return is_whole(call) and not any(map(can_fail, parts(call)))


def _once(column: Columns) -> Callable[[Expression], Datum]:
    known: dict[Expression, Datum] = {}

    def value(expression: Expression) -> Datum:
        if expression not in known:
            known[expression] = _datum(expression, column)
        return known[expression]

    return value


def _passes(expression: Call, column: Columns) -> Mask:
    """Where `evaluable` can evaluate all its arguments, or the argument of `unless_false` is true or fails."""
    if expression.function == EVALUABLE:
        failed = either(*(_checked(argument, column)[1] for argument in expression.arguments))
        return np.asarray(True) if failed is None else ~failed
    value, failed = _checked(expression.arguments[0], column)
    return known_as(value, True) if failed is None else known_as(value, True) | failed


def _datum(expression: Expression, column: Columns) -> Datum:
    if isinstance(expression, Column):
        found = column(expression)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if isinstance(expression, Literal):
        return scalar(expression)
    assert isinstance(expression, Call)
    if expression.function in (EVALUABLE, UNLESS_FALSE):
        return build(_passes(expression, column), None, BOOLEAN)
    if is_whole(expression):
        return _whole(expression, column)[0]
    return function_of(expression.function).kernel(expression.type, *(_datum(a, column) for a in expression.arguments))


def _holds(expression: Expression, column: Columns) -> Mask:
    """Return the same without the rows; may have no dimension. Plain numpy where the values are numbers."""
    if isinstance(expression, Call):
        arguments, function = expression.arguments, expression.function
        if function in (EVALUABLE, UNLESS_FALSE):
            return _passes(expression, column)
        if function == "and":
            left = _holds(arguments[0], column)
            return left & _holds(arguments[1], column) if left.any() else left
        if function == "or":
            return _holds(arguments[0], column) | _holds(arguments[1], column)
        if function in COMPARISONS and family(arguments[0].type) in STORED_AS_NUMBERS:
            return _compare(function, *(_datum(a, column) for a in arguments))
        if function == "between" and family(arguments[0].type) in STORED_AS_NUMBERS:
            value, low, high = (_datum(a, column) for a in arguments)
            return _compare("ge", value, low) & _compare("le", value, high)
    found = _datum(expression, column)
    if isinstance(found, pa.Scalar):
        return np.asarray(found.as_py() is True)
    plain = pc.fill_null(found, False) if found.null_count else found
    return np.asarray(plain.to_numpy(zero_copy_only=False))


def _compare(operator: str, left: Datum, right: Datum) -> Mask:
    found, mask = compare_numbers(operator, left, right), valid(left, right)
    return found if mask is None else np.asarray(found & mask)
