"""What happens to rows for which a condition or an output cannot be evaluated: they become dead letters, and the answer
is that of the others.

A part of a condition that is over one source, alone in it or a side of an equality or a range, rejects the *row*: it
takes part in nothing, so such a condition stays as fast as any. Any other condition rejects the *combination* of rows
for which all the other conditions hold. For this the plan treats what cannot be evaluated as true, whatever its order
of joins, and the result operator looks again. An output that cannot be evaluated rejects the result.
"""

from __future__ import annotations

from dataclasses import replace

from midstream.language.evaluate import can_fail
from midstream.language.expression import Call, Expression
from midstream.language.functions import EVALUABLE, UNLESS_FALSE
from midstream.language.query import BandPredicate, EquiPredicate, Predicate, Query
from midstream.language.types import BOOLEAN

Selections = tuple[tuple[str, Expression], ...]


def with_checks(selections: Selections, predicates: tuple[Predicate, ...]) -> tuple[Selections, tuple[Predicate, ...]]:
    """Selections and predicates as a plan works with them: with one more selection for each source of which a part
    may fail, and with predicates that may fail true where they do.
    """
    parts: dict[str, list[Expression]] = {}
    for alias, selection in selections:
        _note(parts, alias, selection)
    kept = []
    for predicate in predicates:
        if isinstance(predicate, EquiPredicate | BandPredicate):
            for side in (predicate.left, predicate.right):
                _note(parts, next(iter(side.aliases()), ""), side)
        elif can_fail(predicate.expression):
            predicate = replace(predicate, expression=Call(BOOLEAN, UNLESS_FALSE, (predicate.expression,)))
        kept.append(predicate)
    added = tuple((alias, Call(BOOLEAN, EVALUABLE, tuple(some))) for alias, some in parts.items())
    return (*selections, *added), tuple(kept)


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
    if not query.checked:
        return ()
    aggregate = query.aggregate
    over_rows = [] if aggregate is None else aggregate.read()
    if aggregate is None or aggregate.top is not None:
        over_rows += [o.expression for o in query.outputs]
    over_rows += [] if query.outer is None or query.outer.condition is None else [query.outer.condition]
    return tuple(e for e in over_rows if can_fail(e))


def may_reject(query: Query) -> bool:
    """Whether rows, combinations or results of a query may become dead letters."""
    outputs = [o.expression for o in query.outputs] if query.checked else []
    if query.checked and query.aggregate is not None:
        outputs += [] if query.aggregate.having is None else [query.aggregate.having]
        if any(call.function == "sum" for call in query.aggregate.calls):
            return True
    return bool(row_checks(query) or combination_checks(query) or output_checks(query)) or any(map(can_fail, outputs))
