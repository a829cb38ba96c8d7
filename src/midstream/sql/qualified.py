"""QUALIFY by a call: logical nodes of other packages, each made of the results of a query's join.

`QUALIFY ONE_IN(10, A.k)` puts the node of the name `one_in` on top of the join. What the node makes of the results is
the business of the result operator that compiles it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from sqlglot import exp

import midstream.sql as package
from midstream.expr.expression import Expression
from midstream.logical.query import LOGICAL_NODES, LogicalNode
from midstream.model.discovery import kinds
from midstream.model.errors import LanguageError
from midstream.sql.bind import Binder
from midstream.sql.place import error_at


class QualifyNode(LogicalNode, family=True):
    """A logical node that queries ask for by `QUALIFY NAME(arguments)`, of one file, as entry points declare it.

    It is a frozen dataclass with its `name` in small letters; its fields are expressions and values that JSON has. A
    `ResultCompiler` of the same `node` compiles it. It must be deterministic, and what it makes of a step's results may
    depend on nothing but these and what its operator keeps.
    """

    name: ClassVar[str]
    not_spread: ClassVar[str] = "what QUALIFY makes of results cannot be spread over nodes"

    @classmethod
    @abstractmethod
    def of(cls, arguments: Sequence[Expression]) -> Self:
        """Make the node of its typed arguments; raises LanguageError, without a place, for those that do not fit."""


def qualified(tree: exp.Select) -> tuple[exp.Select, exp.Anonymous | None]:
    """Return a query without a QUALIFY that is a single call of a function that SQL does not have, and the call."""
    clause = tree.args.get("qualify")
    if clause is None or not isinstance(clause.this, exp.Anonymous):
        return tree, None
    rest = tree.copy()
    call = rest.args["qualify"].this
    rest.set("qualify", None)
    return rest, call


def node_of(binder: Binder, call: exp.Anonymous, beside: str) -> QualifyNode:
    """Return the node that a call of QUALIFY asks for; `beside` names what else makes something of the results.

    Raises LanguageError, which names the place.
    """
    written, known = call.name.upper(), kinds(package, QualifyNode, LOGICAL_NODES)
    if call.name.lower() not in known:
        names = ", ".join(map(str.upper, known))
        remedy = "write QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= n"
        remedy += f", or one of {names}" if names else "; packages may bring others, and none that is installed does"
        raise error_at(binder.text, call, f"unknown function {written!r} in QUALIFY", remedy)
    if beside:
        remedy = "write it over a subquery that has the rest"
        raise error_at(binder.text, call, f"QUALIFY {written}() cannot be in a query with {beside}", remedy)
    arguments = [binder.bind(argument) for argument in call.expressions]
    try:
        return known[call.name.lower()].of(arguments)
    except LanguageError as error:
        raise error_at(binder.text, call, f"{written}: {error.message}", error.remedy) from error
