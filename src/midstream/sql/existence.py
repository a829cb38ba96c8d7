"""EXISTS, NOT EXISTS, IN and NOT IN over a stream: rewritten to a semi or an anti join.

`a NOT IN (SELECT b ...)` is true only where every `a = b` is false, and not where one is NULL: so it is an anti join on
`a = b` or unknown, as SQL has it, and a row that has a NULL meets all others, whatever their keys. Where conditions say
that neither is NULL it is one on `a = b`, which an index serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema, TableSchema
from midstream.sql.dialect import CqlText, Midstream
from midstream.sql.place import error_at
from midstream.sql.scope import find_name
from midstream.sql.sql_tree import anded
from midstream.sql.subqueries import common_tables, names_shown

_SHAPE = "write EXISTS (SELECT 1 FROM stream WHERE condition), or a IN (SELECT b FROM stream WHERE condition)"
_KEPT = frozenset({"expressions", "from_", "where", "kind", "hint", "distinct"})


def with_existence_joined(
    found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema | TableSchema]
) -> exp.Select:
    """The query with semi and anti joins in the place of the conjuncts of WHERE that ask for existence, if any do.

    Raises LanguageError for a subquery that midstream does not support.
    """
    where = tree.args.get("where")
    parts = [] if where is None else list(where.this.unnest().flatten()) if _is_and(where.this) else [where.this]
    asked = [part for part in parts if _asked(part) is not None]
    if not asked:
        return tree
    rewritten = tree.copy()
    rest = [part.copy() for part in parts if not any(part is one for one in asked)]
    rewritten.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    named = [item.alias_or_name for item in _items(tree)]
    for part in asked:
        node, negated = _asked(part) or (part, False)
        join = exp.Join(kind="ANTI" if negated else "SEMI")
        table, condition = _joined(found, node, negated, tree, streams, named, rest)
        named.append(table.alias_or_name)
        join.set("this", table)
        join.set("on", condition)
        join.meta[ASKED] = True
        rewritten.append("joins", join)
    return rewritten


ASKED = "asked"
"""What a join that stands for a condition of WHERE has in its meta data: it comes after all others."""


def _is_and(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.And)


def _asked(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    inner, negated = node.unnest(), False
    while isinstance(inner, exp.Not):
        inner, negated = inner.this.unnest(), not negated
    return (inner, negated) if isinstance(inner, exp.Exists) or inner.args.get("query") is not None else None


def _joined(
    found: CqlText,
    node: exp.Expr,
    negated: bool,
    tree: exp.Select,
    streams: Mapping[str, StreamSchema | TableSchema],
    named: Sequence[str],
    beside: Sequence[exp.Expr],
) -> tuple[exp.Expr, exp.Expr]:
    """The stream that a subquery reads, and the condition on which its rows count; of sources `named` alike it is told
    apart by another name. `beside` are the conditions that stand next to the one of existence.
    """
    select = node.this if isinstance(node, exp.Exists) else node.args["query"].unnest()
    extra = [key for key, value in select.args.items() if value and key not in _KEPT]
    if not isinstance(select, exp.Select) or select.args.get("from_") is None or extra:
        raise _refused(found, node, "a subquery that is more than SELECT ... FROM stream WHERE ...", _SHAPE)
    select = select.copy()
    table = select.args["from_"].this
    if find_name(table.alias_or_name, named):
        _rename(select, table, named)
    common = common_tables(found.text, tree)
    inner, *outer = (_shown(one, common, streams) for one in (table, *_items(tree)))
    where = select.args.get("where")
    conditions = [] if where is None else [_qualified(where.this, inner, outer)]
    if isinstance(node, exp.In):
        row = node.this.unnest()
        asked = row.expressions if isinstance(row, exp.Tuple) else [node.this]
        if len(select.expressions) != len(asked) or any(item.is_star for item in select.expressions):
            what = f"IN (SELECT ...) of other than {'one column' if len(asked) == 1 else f'{len(asked)} columns'}"
            raise _refused(found, node, what, _SHAPE)
        outside, equal = [_qualified(part, ("", ()), outer) for part in beside], list[exp.Expr]()
        for own, other in zip(asked, select.expressions, strict=True):
            own, other = _qualified(own, ("", ()), outer), _qualified(other.unalias(), inner, outer)
            same: exp.Expr = exp.EQ(this=own, expression=other)
            if negated and not (_excludes_null(conditions, other) and _excludes_null(outside, own)):
                same = exp.Coalesce(this=same, expressions=[exp.Boolean(this=True)])
            equal.append(same)
        conditions = [*equal, *conditions]
    return table, exp.and_(*conditions, copy=False) if conditions else exp.Boolean(this=True)


def _excludes_null(conditions: Sequence[exp.Expr], value: exp.Expr) -> bool:
    asked = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())).sql(Midstream, identify=True)
    return any(part.sql(Midstream, identify=True) == asked for condition in conditions for part in anded(condition))


def _items(tree: exp.Select) -> list[exp.Expr]:
    return [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]


def _rename(select: exp.Select, table: exp.Expr, named: Sequence[str]) -> None:
    """Give the source of a subquery a name of its own: within, the one that it has means no other."""
    before, number = table.alias_or_name, 2
    while find_name(f"{before}_{number}", named):
        number += 1
    for column in select.find_all(exp.Column):
        if column.table.lower() == before.lower():
            column.set("table", exp.to_identifier(f"{before}_{number}", quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(f"{before}_{number}", quoted=True)))


Shown = tuple[str, tuple[str, ...]]
"""A source's alias and the names of its columns."""


def _shown(
    table: exp.Expr, common: Mapping[str, exp.Select], streams: Mapping[str, StreamSchema | TableSchema]
) -> Shown:
    return table.alias_or_name, names_shown(table, common, streams)


def _qualified(node: exp.Expr, inner: Shown, outer: Sequence[Shown]) -> exp.Expr:
    """Return the expression with bare columns given to the inner source if it has them, else to the only outer one."""

    def named(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or not isinstance(part.this, exp.Identifier):
            return part
        having = [alias for alias, names in outer if find_name(part.name, names)]
        if find_name(part.name, inner[1]):
            having = [inner[0]]
        if len(having) == 1:
            part.set("table", exp.to_identifier(having[0], quoted=True))
        return part

    return node.copy().transform(named, copy=False)


def _refused(found: CqlText, node: exp.Expr, message: str, remedy: str) -> LanguageError:
    return error_at(found.text, node, f"{message} is not allowed here", remedy)


_MORE = ("group", "having", "qualify", "distinct", "with_", "every", "subtrahends")


def with_alternatives_apart(tree: exp.Select) -> exp.Query:
    """Return a SELECT of rows that asks for existence next to OR as a UNION ALL; any other as it is.

    >>> import sqlglot
    >>> print(with_alternatives_apart(sqlglot.parse_one("SELECT k FROM A WHERE v > 3 OR EXISTS (SELECT 1 FROM B)")))
    SELECT k FROM A WHERE (v > 3) UNION ALL SELECT k FROM A WHERE NOT (v > 3) IS TRUE AND (EXISTS(SELECT 1 FROM B))
    """
    where = tree.args.get("where")
    if where is None or any(tree.args.get(key) for key in _MORE) or not _asks(where):
        return tree
    parts = list(where.this.flatten(unnest=False)) if isinstance(where.this, exp.And) else [where.this]
    for at, part in enumerate(parts):
        inner = part.this if isinstance(part, exp.Paren) else part
        found = _alternatives(list(inner.flatten(unnest=False))) if isinstance(inner, exp.Or) else None
        if found is None:
            continue
        selects = list[exp.Query]()
        for condition in found:
            select = tree.copy()
            conditions = [*parts[:at], condition, *parts[at + 1 :]]
            select.set("where", exp.Where(this=exp.and_(*conditions, wrap=False)))
            selects.append(select)
        return exp.union(*selects, distinct=False, copy=False)
    return tree


def _asks(node: exp.Expr) -> bool:
    return any(isinstance(one, exp.Exists) or one.args.get("query") for one in node.find_all(exp.Exists, exp.In))


def _alternatives(groups: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """The conditions of which a row satisfies one at most, and one if it satisfies any of those that OR binds together;
    None where no EXISTS is among these, or more than one that may be unknown.
    """
    plain = [group for group in groups if not _asks(group)]
    certain = [group for group in groups if _asks(group) and _is_exists(group)]
    unknown = [group for group in groups if _asks(group) and not _is_exists(group)]
    if len(unknown) > 1 or not certain + unknown:
        return None
    found, before = list[exp.Expr](), list[exp.Expr]()
    if plain:
        either = exp.Paren(this=exp.or_(*plain))
        found.append(either)
        before.append(exp.Not(this=exp.Is(this=either.copy(), expression=exp.true())))
    for group in (*certain, *unknown):
        found.append(exp.and_(*before, exp.Paren(this=group.copy()), wrap=False))
        before.append(exp.Not(this=exp.Paren(this=group.copy())))
    return found


def _is_exists(group: exp.Expr) -> bool:
    return isinstance(group.this if isinstance(group, exp.Not) else group, exp.Exists)
