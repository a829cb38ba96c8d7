"""Items of lists as rows: UNNEST and explode in FROM, in LATERAL VIEW and in the select list.

`FROM A CROSS JOIN UNNEST(A.items) AS t(x)` joins each row of A with the items of its own list, as it would be joined
with the rows of a static table. All other ways to write it are made that one here.
"""

from __future__ import annotations

from sqlglot import exp

from midstream.sql.place import error_at, word_at
from midstream.sql.sql_tree import sql_of
from midstream.sql.top_n_clause import is_over

UNNAMED = "unnest"
"""What the items of a list that has no name are called: in FROM, and, behind blanks, in the select list."""

_SHAPE = "write FROM A CROSS JOIN UNNEST(A.items) AS t(x)"
_OTHERS = (exp.Posexplode, exp.Inline)
LISTS = (exp.Unnest, exp.Explode, exp.Lateral, *_OTHERS)
"""What stands in a query that unnests a list."""


def with_items_joined(text: str, tree: exp.Select) -> exp.Select:
    """The query with all lists that it unnests as `exp.Unnest` among its joins, each with an alias and the names of its
    columns; raises LanguageError.
    """
    if not tree.find(*LISTS):
        return tree
    written = tree.copy()
    joins = [_joined(text, join) for join in written.args.get("joins") or []]
    for lateral in written.args.get("laterals") or []:
        side = {"side": "LEFT", "on": exp.true()} if lateral.args.get("outer") else {"kind": "CROSS"}
        joins.append(exp.Join(this=_source(text, lateral), **side))
    written.set("laterals", None)
    lists = [node for item in written.expressions for node in item.find_all(exp.Explode, *_OTHERS)]
    if lists:
        joins.append(_selected(text, written, lists))
    written.set("joins", joins)
    if isinstance(written.args["from_"].this, exp.Unnest | exp.Lateral):
        raise error_at(text, written, "UNNEST needs a stream that has the list", _SHAPE)
    return written


def _selected(text: str, tree: exp.Select, lists: list[exp.Expr]) -> exp.Join:
    node = lists[0]
    if len(lists) > 1:
        raise error_at(text, lists[1], "a select list can unnest only one list", f"{_SHAPE}, for each")
    _check_function(text, node, node)
    if tree.args.get("group") is not None or tree.find(exp.AggFunc) or is_over(tree):
        remedy = f"{_SHAPE}, or unnest in a subquery"
        raise error_at(
            text,
            node,
            "a query that unnests in its select list cannot group, aggregate or use OVER",
            remedy,
        )
    alias = f" {UNNAMED}"
    items = []
    for item in tree.expressions:
        if item.find(exp.Explode) is None:
            items.append(item)
            continue
        whole = node is item.unalias()
        title = item.alias or (UNNAMED if whole else sql_of(item))
        column = exp.column(UNNAMED, alias, quoted=True)
        if not whole:
            node.replace(column)
        items.append(exp.alias_(column if whole else item.unalias(), title, quoted=True))
    listed = exp.Unnest(expressions=[node.this], alias=_alias(alias, [UNNAMED]))
    tree.set("expressions", items)
    return exp.Join(this=listed, kind="CROSS")


def _joined(text: str, join: exp.Expr) -> exp.Expr:
    item = join.this
    if isinstance(item, exp.Unnest) or (isinstance(item, exp.Lateral) and not isinstance(item.this, exp.Subquery)):
        join.set("this", _source(text, item))
    return join


def _source(text: str, item: exp.Expr) -> exp.Unnest:
    """A list in FROM, with an alias, the names of its columns, and `offset` where the second is an item's place."""
    inner = item.this if isinstance(item, exp.Lateral) else item
    lists = inner.expressions if isinstance(inner, exp.Unnest) else [inner.this]
    if not isinstance(inner, exp.Unnest):
        _check_function(text, inner, item)
    if len(lists) != 1:
        raise error_at(text, item, "UNNEST can take only one list", f"{_SHAPE}, for each")
    given, offset = item.args.get("alias"), inner.args.get("offset")
    alias = given.name if given is not None else ""
    titles = [one.name for one in (given.args.get("columns") or [] if given is not None else [])]
    if isinstance(offset, exp.Identifier):
        titles.append(offset.name)
    numbered = bool(offset) or bool(item.args.get("ordinality"))
    if len(titles) > 1 + numbered:
        remedy = "name one column, and with WITH ORDINALITY a second"
        raise error_at(text, item, f"the items of a list cannot have {len(titles)} column names", remedy)
    titles = titles or [("col" if item.args.get("view") else alias) or UNNAMED]
    titles += ["ordinality"] if numbered and len(titles) == 1 else []
    named, window = _alias(alias or titles[0], titles), item.args.get("window")
    return exp.Unnest(expressions=[lists[0]], alias=named, offset=numbered, window=window)


def _alias(name: str, titles: list[str]) -> exp.TableAlias:
    columns = [exp.to_identifier(title, quoted=True) for title in titles]
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)


def _check_function(text: str, node: exp.Expr, place: exp.Expr) -> None:
    if type(node) is not exp.Explode or node.expressions:
        written = (word_at(text, node) or node.key).upper()
        name = "UNNEST with options" if type(node) is exp.Explode else written
        remedy = f"{_SHAPE}; LEFT JOIN UNNEST(...) AS t(x) ON TRUE keeps rows without items"
        if isinstance(node, exp.Posexplode):
            remedy = "write FROM A CROSS JOIN UNNEST(A.items) WITH ORDINALITY AS t(x, place)"
        raise error_at(text, place, f"{name} cannot unnest a list", remedy)
