"""Conjuncts sorted by kind: selections, equi-predicates, band predicates, theta predicates."""

from __future__ import annotations

from collections.abc import Iterator

from midstream.language.band import band
from midstream.language.expression import Call, Expression
from midstream.language.functions import always
from midstream.language.query import EquiPredicate, Predicate


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
    >>> from midstream.language.expression import Column
    >>> from midstream.language.functions import call
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
    if isinstance(conjunct, Call) and conjunct.function == "eq":
        left, right = conjunct.arguments
        if len(left.aliases()) == len(right.aliases()) == 1 and left.aliases() != right.aliases():
            return EquiPredicate(conjunct, left, right)
    return band(conjunct) or Predicate(conjunct)
