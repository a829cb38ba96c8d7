"""What happens to rows for which a condition or an output cannot be evaluated: they become dead letters, and the answer
is that of the others.

A part of a condition that is over one source, alone in it or a side of an equality or a range, rejects the *row*: it
takes part in nothing, so such a condition stays as fast as any. Any other condition rejects the *combination* of rows
for which all the other conditions hold. For this the plan treats what cannot be evaluated as true, whatever its order
of joins, and the result operator looks again. An output that cannot be evaluated rejects the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta

from midstream.expr.evaluate import can_fail, fails_itself
from midstream.expr.expression import Call, Column, Expression, Literal
from midstream.expr.functions import EVALUABLE, UNLESS_FALSE
from midstream.expr.types import BOOLEAN, family
from midstream.logical.query import BandPredicate, EquiPredicate, Predicate, Query

_SHORT = timedelta(days=366)
"""By so much an event time may be shifted and still be one that is near the event times of the other stream's rows."""

Selections = tuple[tuple[str, Expression], ...]


def with_checks(
    selections: Selections, predicates: tuple[Predicate, ...], times: Mapping[str, str]
) -> tuple[Selections, tuple[Predicate, ...]]:
    """Selections and predicates as a plan works with them: with one more selection for each source of which a part
    may fail, and with predicates that may fail true where they do.

    Ranges are searched by the sums of their sides, without casts that keep a number or a time as it is; such casts are
    looked at too. `times` has streams by alias, with their event times where they have RANGE windows.
    """
    parts: dict[str, list[Expression]] = {}
    for alias, selection in selections:
        _note(parts, alias, selection)
    kept = []
    for predicate in predicates:
        if isinstance(predicate, EquiPredicate | BandPredicate):
            for part in _of_streams(predicate, times):
                _note(parts, next(iter(part.aliases()), ""), part)
        elif can_fail(predicate.expression):
            predicate = replace(predicate, expression=Call(BOOLEAN, UNLESS_FALSE, (predicate.expression,)))
        kept.append(predicate)
    added = tuple((alias, Call(BOOLEAN, EVALUABLE, tuple(some))) for alias, some in parts.items())
    return (*selections, *added), tuple(kept)


def _of_streams(predicate: EquiPredicate | BandPredicate, times: Mapping[str, str]) -> Iterator[Expression]:
    """Return the parts of a condition that may fail, each over one stream. Event times that are near do not fail."""
    for part in (predicate.left, predicate.right, *beside(predicate)):
        if part.aliases() <= times.keys() and not _is_near(part, predicate, times):
            yield part


def _is_near(part: Expression, predicate: Predicate, times: Mapping[str, str]) -> bool:
    """Whether a part is an event time that is made nanoseconds, next to one in nanoseconds: where these do not reach it
    meets none, for a query over event times would else have to look at each of their rows.
    """
    if not isinstance(part, Call) or part.function != "cast" or not fails_itself(part):
        return False
    time = _shifted(part)
    if time is None:
        return False
    others = predicate.expression.columns() - {time}
    return all(times.get(one.alias) == one.name for one in (time, *others)) and (
        _in_ns(time) or all(map(_in_ns, others))
    )


def _shifted(expression: Expression) -> Column | None:
    while isinstance(expression, Call) and family(expression.type) == "timestamp":
        match expression:
            case Call(function="cast", arguments=(inner,)):
                expression = inner
            case Call(function="add" | "sub", arguments=(inner, Literal(_, timedelta() as by))) if abs(by) <= _SHORT:
                expression = inner
            case _:
                break
    return expression if isinstance(expression, Column) else None


def _in_ns(column: Column) -> bool:
    return bool(family(column.type) == "timestamp" and column.type.unit == "ns")


def beside(predicate: EquiPredicate | BandPredicate) -> tuple[Expression, ...]:
    """The parts of a condition over one source each that have casts which neither side of it has, and which may fail.

    Sums of times are those of the sides: rows that are so far away have none in the other's window.
    """
    return tuple(_beside(predicate.expression, (predicate.left, predicate.right)))


def _beside(expression: Expression, sides: tuple[Expression, ...]) -> Iterator[Expression]:
    if len(expression.aliases()) > 1:
        for part in expression.children():
            yield from _beside(part, sides)
    elif _fails_above(expression, sides):
        yield expression


def _fails_above(expression: Expression, sides: tuple[Expression, ...]) -> bool:
    if expression in sides or not isinstance(expression, Call):
        return False
    own = expression.function == "cast" and fails_itself(expression)
    return own or any(_fails_above(part, sides) for part in expression.arguments)


def _note(parts: dict[str, list[Expression]], alias: str, part: Expression) -> None:
    known = parts.get(alias, [])
    if can_fail(part) and part not in known:
        parts[alias] = [*known, part]


def row_checks(query: Query) -> dict[str, tuple[Expression, ...]]:
    """For each source the parts of conditions that may fail for its rows."""
    found = [(alias, e) for alias, e in query.selections if isinstance(e, Call) and e.function == EVALUABLE]
    return {alias: call.arguments for alias, call in found}


def combination_checks(query: Query) -> tuple[Expression, ...]:
    """The conditions that may fail for a combination of rows of several sources."""
    found = (p.expression for p in query.predicates)
    return tuple(e.arguments[0] for e in found if isinstance(e, Call) and e.function == UNLESS_FALSE)


def output_checks(query: Query) -> tuple[Expression, ...]:
    """What is evaluated over the rows of the sources after the conditions, and may fail."""
    outputs = [o.expression for o in query.outputs]
    over_rows = outputs if query.on_top is None else query.on_top.over_rows(outputs)
    return tuple(e for e in over_rows if can_fail(e))


def may_reject(query: Query) -> bool:
    """Whether rows, combinations or results of a query may become dead letters."""
    outputs = [o.expression for o in query.outputs]
    if query.on_top is not None:
        outputs += query.on_top.above()
        if query.on_top.may_overflow():
            return True
    return bool(row_checks(query) or combination_checks(query) or output_checks(query)) or any(map(can_fail, outputs))
