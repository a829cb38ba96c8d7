"""What stands between SELECTs: UNION, INTERSECT and EXCEPT.

The SELECTs become queries of their own, *parts*, and all their answers are one stream: see `midstream.sql.parts`.
UNION ALL is that stream, UNION its different rows. For INTERSECT and EXCEPT each answer also has the number of its
SELECT; the rows that are asked for are the groups of equal answers in which the right numbers are. Groups take NULLs
for equal, as these operations do.
"""

from __future__ import annotations

from sqlglot import exp

from midstream.model.errors import LanguageError
from midstream.sql.place import place

NUMBER = "number of the select"
"""The column of answers that says of which SELECT they are; `*` does not stand for it."""

_NAMES = ("union", "intersect", "except")
_COUNTED = {"intersect": "join these", "except": "LEFT JOIN these"}


def selects_of(text: str, tree: exp.Expr) -> list[exp.Expr] | None:
    """The SELECTs of an operation, numbered where that matters; None for a single SELECT. Raises LanguageError for
    several kinds of operations.

    >>> from midstream.sql.dialect import statement
    >>> text = "SELECT k, ts FROM A INTERSECT SELECT k, ts FROM B"
    >>> print(selects_of(text, statement(text))[1].sql())
    SELECT k, ts, 1 AS "number of the select" FROM B
    >>> print(over(statement(text), "x").sql())
    SELECT DISTINCT * FROM "x" HAVING LOGICAL_OR("number of the select" = 0) AND LOGICAL_OR("number of the select" = 1)
    """
    if not isinstance(tree, exp.SetOperation):
        return None
    selects, operators = operands(tree)
    first = _words(operators[0])
    for one in operators:
        words, spot = _words(one), place(text, one.meta.get("operator", 0))
        if words != first:
            remedy = f"put those that belong together into a subquery: FROM (SELECT ... {first} SELECT ...) AS x"
            raise LanguageError(f"{first} and {words} cannot be combined without a subquery", place=spot, remedy=remedy)
        if words in ("INTERSECT ALL", "EXCEPT ALL") or one.args.get("by_name"):
            what = "BY NAME" if one.args.get("by_name") else words
            remedy = f"leave ALL out; or count equal rows with GROUP BY in subqueries, and {_COUNTED.get(one.key)}"
            remedy = "write the columns in the same order" if one.args.get("by_name") else remedy
            raise LanguageError(f"{what} is not part of the language", place=spot, remedy=remedy)
    for number, select in enumerate(selects):
        if tree.key != "union" and isinstance(select, exp.Select):
            select.append("expressions", exp.alias_(exp.Literal.number(number), NUMBER, quoted=True))
    # What stands behind the last SELECT is read as if it were said of all.
    for key in ("order", "limit", "offset"):
        if operators[0].args.get(key) is not None:
            selects[-1].set(key, operators[0].args[key])
    return selects


def operands(tree: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The SELECTs of operations in their order, and the operations."""
    if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query) and not tree.alias:
        return operands(tree.this)
    if not isinstance(tree, exp.SetOperation):
        return [tree], []
    (left, before), (right, behind) = operands(tree.this), operands(tree.expression)
    return [*left, *right], [*before, tree, *behind]


def _words(operation: exp.Expr) -> str:
    return operation.key.upper() if operation.args.get("distinct") else f"{operation.key.upper()} ALL"


def stream_of(operation: exp.Expr, digest: str) -> str:
    """The name of the stream of all answers."""
    return f"{operation.key}-{digest}"


def over(operation: exp.Expr, stream: str) -> exp.Select:
    """The SELECT that makes of a stream of all answers what the operation gives."""
    distinct = exp.Distinct() if operation.args.get("distinct") else None
    table = exp.Table(this=exp.to_identifier(stream, quoted=True))
    whole = exp.Select(distinct=distinct, expressions=[exp.Star()], from_=exp.From(this=table))
    if not isinstance(operation, exp.Union):
        count = len(operands(operation)[0])
        numbered = (
            exp.EQ(this=exp.column(NUMBER, quoted=True), expression=exp.Literal.number(at)) for at in range(count)
        )
        present: list[exp.Expr] = [exp.LogicalOr(this=one) for one in numbered]
        if isinstance(operation, exp.Except):
            present = [present[0], *(exp.Not(this=one) for one in present[1:])]
        whole.set("having", exp.Having(this=exp.and_(*present, copy=False)))
    return whole


def operation_of(stream: str) -> str | None:
    """The name of the operation of whose answers there is a stream of this name; None where it is another stream.

    >>> operation_of("intersect-05fb540f"), operation_of("x-05fb540f")
    ('intersect', None)
    """
    name, _, digest = stream.partition("-")
    return name if digest and name in _NAMES else None
