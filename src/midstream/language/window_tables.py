"""TUMBLE in FROM, of which rows are asked with their windows, as a subquery that selects these.

`FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) L JOIN ...` reads A with two more columns,
`window_start` and `window_end`, as Flink has it. Rows of one `window_end` are near each other in time, so its equality
bounds a join. Where the rows are grouped by their windows, or ranked in them, the tree stays as it is: see
`midstream.language.group_window`.
"""

from __future__ import annotations

from sqlglot import exp

from midstream.language.dialect import WindowFunction
from midstream.language.error_at import error_at
from midstream.language.place import standing_at

_SHAPE = "write TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
_GROUPING = ("group", "having", "qualify", "distinct")


def with_window_columns(text: str, tree: exp.Expr) -> exp.Expr:
    """Return a query with a subquery in the place of each TUMBLE in FROM by whose windows nothing is grouped.

    Raises LanguageError for other windows by which nothing is grouped, and for those of a join that groups.
    """
    windowed = [table for table in tree.find_all(exp.Table) if table.args.get("windowed") is not None]
    for table in windowed:
        if not _is_grouped(text, table):
            table.replace(_subquery(text, table))
        else:
            _hoist(tree, table)
    return tree


def _hoist(tree: exp.Expr, table: exp.Expr) -> None:
    """Put a window in the place of a SELECT * of its rows, of which the SELECT around that is grouped."""
    select = table.find_ancestor(exp.Select)
    plain = select is not None and [*filter(select.args.get, select.args)] == ["expressions", "from_"]
    if select is None or not plain or select.expressions != [exp.Star()]:
        return
    around, places = select.parent, list[exp.Expr]()
    if isinstance(around, exp.Subquery):
        places = [around]
    elif isinstance(around, exp.CTE) and isinstance(tree, exp.Select):
        places = [one for one in tree.find_all(exp.Table) if one.name.lower() == around.alias.lower()]
        tree.args["with_"].expressions.remove(around)
        if not tree.args["with_"].expressions:
            tree.set("with_", None)
    for place in places:
        named = table.copy()
        if place.alias:
            named.set("alias", place.args["alias"].copy())
        place.replace(named)


def _is_grouped(text: str, table: exp.Expr) -> bool:
    """Whether the SELECT around a source, or one around that, which reads nothing else, groups its rows."""
    select = around = table.find_ancestor(exp.Select)
    while around is not None:
        joined = bool(around.args.get("joins"))
        if joined and around is select and around.args.get("group") is not None:
            raise error_at(
                text,
                table.args["windowed"].call,
                "windows of TUMBLE or its like in FROM group the rows of one stream, not of a join",
                "write FROM A JOIN B ... GROUP BY TUMBLE(_ts, INTERVAL '10' MINUTES) for the time of a join's results, "
                "or TUMBLE(A.ts, ...); or join the windows in a subquery",
            )
        if joined or not isinstance(around, exp.Select):
            return False
        ranks = any(item.find(exp.Window) for item in around.expressions)
        if ranks or any(around.args.get(key) for key in _GROUPING):
            return True
        named = isinstance(around.parent, exp.CTE)
        source = isinstance(around.parent, exp.Subquery) and isinstance(around.parent.parent, exp.From)
        above = around.parent if named or source else None
        around = None if above is None else above.find_ancestor(exp.Select)
    return False


def _subquery(text: str, table: exp.Expr) -> exp.Expr:
    """The SELECT of a stream's rows with their windows, under the alias of the source, or the stream's name."""
    function: WindowFunction = table.args["windowed"]
    time, size, *moved = (*function.call.expressions, None, None)[: max(2, len(function.call.expressions))]
    if time is None or size is None:
        raise error_at(text, function.call, f"{function.call.name.upper()} without a size", _SHAPE)
    if function.call.name.upper() != "TUMBLE":
        raise error_at(
            text,
            function.call,
            f"rows with their windows of {function.call.name.upper()}, by which nothing is grouped",
            "GROUP BY window_start, window_end, or PARTITION BY them; or join windows of TUMBLE, or rows by how far "
            "apart they may be: L.ts BETWEEN R.ts - INTERVAL 10 MINUTES AND R.ts",
        )
    origin: exp.Expr = exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP")
    for offset in moved[:1]:
        origin = exp.Add(this=origin, expression=offset.copy())
    start = exp.DateBin(this=size.copy(), expression=time.copy(), unit=origin)
    end = exp.Add(this=start.copy(), expression=size.copy())
    shown = [exp.Star(), exp.alias_(start, "window_start"), exp.alias_(end, "window_end")]
    select = exp.Select(expressions=shown, from_=exp.From(this=exp.Table(this=table.this.copy())))
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    return standing_at(exp.Subquery(this=select, alias=alias, window=table.args.get("window")), table)
