"""EXCEPT ON: which columns of the minuend must match which of each subtrahend."""

from __future__ import annotations

from midstream.language.cql_tokens import CqlText
from midstream.language.expression import Expression
from midstream.language.functions import call
from midstream.language.place import place
from midstream.language.query import Difference, Predicate
from midstream.language.scope import Scope
from midstream.model.errors import LanguageError


def difference_of(found: CqlText, scope: Scope) -> tuple[list[Expression], Difference | None]:
    """The equalities of a query's EXCEPT clauses, and the difference they make; raises LanguageError."""
    if not found.subtrahends:
        return [], None
    aliases = [alias for alias, _ in scope.sources]
    if len(aliases) != 1 + len(found.subtrahends):
        raise LanguageError(
            "EXCEPT ON subtracts from a single stream, not from a join",
            place=place(found.text, found.subtrahends[0].offset),
            remedy="name one stream in FROM",
        )
    minuend, *others = aliases
    ties: list[Expression] = []
    for clause, other in zip(found.subtrahends, others, strict=True):
        for name, offset in clause.columns:
            try:
                ties.append(call("eq", scope.column(name, minuend), scope.column(name, other)))
            except LanguageError as error:
                raise LanguageError(error.message, place=place(found.text, offset), remedy=error.remedy) from error
    return ties, Difference(minuend, tuple(others))


def check_predicates(found: CqlText, predicates: tuple[Predicate, ...], ties: int) -> None:
    """Refuse conditions over several sources that are no EXCEPT ON columns."""
    if found.subtrahends and len(predicates) > ties:
        raise LanguageError(
            "a condition of an EXCEPT query reads several sources",
            place=place(found.text, found.subtrahends[0].offset),
            remedy="tie the streams by EXCEPT ON (columns) only; WHERE may read one stream per condition",
        )
