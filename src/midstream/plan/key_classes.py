"""Key classes: expressions that a query's equalities make equal, directly or by way of others.

`tied_sources` groups the sources that any conditions of a query connect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from midstream.expr.expression import Call, Expression
from midstream.logical.query import EquiPredicate, Query
from midstream.model.frozen import kept_with


@dataclass(frozen=True)
class KeyClass:
    """Expressions over one source each, all of one type, that are equal in every result; in order of their text."""

    members: tuple[Expression, ...]
    equals: str

    def within(self, labels: Iterable[str]) -> tuple[Expression, ...]:
        """Select the members over these sources."""
        inside = frozenset(labels)
        return tuple([member for alias, member in self._by_source if alias in inside])

    def equal(self, one: Expression, other: Expression) -> Expression:
        """Build the condition that two members are equal."""
        return Call(pa.bool_(), self.equals, (one, other))

    def doubles(self, labels: Iterable[str]) -> tuple[Expression, ...]:
        """List the members beyond the first of their source: only a join with another source makes them equal."""
        inside, met, found = frozenset(labels), set[str](), []
        for alias, member in self._by_source:
            if alias in met:
                found.append(member)
            elif alias in inside:
                met.add(alias)
        return tuple(found)

    @cached_property
    def _by_source(self) -> tuple[tuple[str, Expression], ...]:
        return tuple((alias, member) for member in self.members for alias in member.aliases())

    def text(self) -> str:
        """Format the class as one chain of equalities."""
        return " = ".join(m.text() for m in self.members)


def key_classes(query: Query) -> tuple[KeyClass, ...]:
    """Derive the key classes of a query, in order of their first member's text.

    `A.k = B.k AND B.k = C.k` makes one class, so that A and C may be joined by their key although no predicate says so.
    """
    return kept_with(query, "_key_classes", _key_classes)


def _key_classes(query: Query) -> tuple[KeyClass, ...]:
    found: dict[str, dict[str, Expression]] = {}
    equals = "="
    for predicate in query.predicates:
        if isinstance(predicate, EquiPredicate):
            if isinstance(predicate.expression, Call):
                equals = predicate.expression.function
            one = found.setdefault(predicate.left.text(), {predicate.left.text(): predicate.left})
            other = found.setdefault(predicate.right.text(), {predicate.right.text(): predicate.right})
            if one is not other:
                one.update(other)
                found.update(dict.fromkeys(other, one))
    unique = {id(members): members for members in found.values()}
    ordered = [tuple(members[text] for text in sorted(members)) for members in unique.values()]
    return tuple(KeyClass(members, equals) for members in sorted(ordered, key=lambda m: m[0].text()))


def tied_sources(query: Query) -> tuple[tuple[str, ...], ...]:
    """Group the sources that conditions connect, in order of FROM; several groups mean a cross join.

    >>> import pyarrow as pa
    >>> from midstream.sql.parse import parse_query
    >>> from midstream.model.schema import StreamSchema
    >>> columns = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    >>> streams = {name: StreamSchema(name, columns, "ts") for name in "ABC"}
    >>> tied_sources(parse_query("SELECT A.k FROM A, B, C WHERE A.k < C.k WINDOW 5 SECONDS", streams))
    (('A', 'C'), ('B',))
    """
    groups = [{alias} for alias in query.aliases]
    for predicate in query.predicates:
        tied = [group for group in groups if group & predicate.aliases()]
        groups = [group for group in groups if not group & predicate.aliases()] + [set().union(*tied)]
    ordered = [tuple(alias for alias in query.aliases if alias in group) for group in groups]
    return tuple(sorted(ordered, key=lambda group: query.aliases.index(group[0])))
