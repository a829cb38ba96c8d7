"""TUMBLE, HOP and CUMULATE in FROM, of which rows are asked with their windows, as a subquery that selects these.

`FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) L JOIN ...` reads A with two more columns,
`window_start` and `window_end`, as Flink has it. Rows of one `window_end` are near each other in time, so its equality
bounds a join. A row is in several windows of HOP and CUMULATE: the list of their ends is unnested. Where the rows are
grouped by their windows, or ranked in them, the tree stays as it is: see `midstream.sql.group_window`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from midstream.expr.shaped_rules import MOST_WINDOWS
from midstream.sql.dialect import WindowFunction
from midstream.sql.group_window import WINDOW_CALLS, duration
from midstream.sql.place import error_at, standing_at

_SHAPE = "write TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
_GROUPING = ("group", "having", "qualify", "distinct")


def with_window_columns(text: str, tree: exp.Expr) -> exp.Expr:
    """Return a query with a subquery in the place of each TUMBLE in FROM by whose windows nothing is grouped.

    Raises LanguageError for sessions by which nothing is grouped, for windows of a join that groups, and for equal
    bounds of windows that are not equally long.
    """
    windowed = [table for table in tree.find_all(exp.Table) if table.args.get("windowed") is not None]
    _check_sizes(text, tree, windowed)
    for table in windowed:
        if not _is_grouped(text, table):
            table.replace(_subquery(text, table))
        else:
            _hoist(tree, table)
    return tree


def _check_sizes(text: str, tree: exp.Expr, windowed: Sequence[exp.Expr]) -> None:
    """Refuse a join on both bounds of windows of TUMBLE and HOP that differ in size: it has no answer ever."""
    sizes: dict[str, set[int]] = {}
    for table in windowed:
        function: WindowFunction = table.args["windowed"]
        at = {"TUMBLE": 1, "HOP": 2}.get(function.call.name.upper())
        if at is None or len(windowed) < 2 or len(function.call.expressions) <= at:
            continue
        size, select = duration(text, function.call.expressions[at]), table.find_ancestor(exp.Select)
        around = select.parent if select is not None else None
        for name in (table.alias_or_name, around.alias if isinstance(around, exp.Subquery | exp.CTE) else ""):
            sizes.setdefault(name.lower(), set()).add(size)
    bounds: dict[frozenset[str], set[str]] = {}
    for node in tree.find_all(exp.EQ) if len(sizes) > 1 else ():
        left, right = node.this, node.expression
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column) and left.name == right.name):
            continue
        one, other = (sizes.get(column.table.lower(), set()) for column in (left, right))
        named = bounds.setdefault(frozenset((left.table.lower(), right.table.lower())), set())
        named.add(left.name.lower())
        if len(one) == len(other) == 1 and one != other and named >= {"window_start", "window_end"}:
            raise error_at(
                text, node, "a join on both bounds needs windows of the same size", "give both windows the same size"
            )


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
    """Return whether the SELECT around a source, or one around that, which reads nothing else, groups its rows."""
    select = around = table.find_ancestor(exp.Select)
    while around is not None:
        joined = bool(around.args.get("joins"))
        if joined and around is select and around.args.get("group") is not None:
            raise error_at(
                text,
                table.args["windowed"].call,
                "windows of TUMBLE or its like in FROM group the rows of one stream, not of a join",
                "to group by the time of a join's results, write FROM A JOIN B ... GROUP BY TUMBLE(_ts, INTERVAL '10' "
                "MINUTES); to group by the time of a stream, write TUMBLE(A.ts, ...) there; or join the windows in a "
                "subquery",
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
    """Return the SELECT of a stream's rows with their windows, under the alias of the source, or the stream's name."""
    function: WindowFunction = table.args["windowed"]
    name, arguments = function.call.name.upper(), function.call.expressions
    if name == "SESSION":
        raise error_at(
            text,
            function.call,
            "a query cannot join the rows of sessions without a GROUP BY of the sessions",
            "group by window_start, window_end in a subquery for each side; or join rows by their distance in time: "
            "L.ts BETWEEN R.ts - INTERVAL 10 MINUTES AND R.ts",
        )
    least = 2 if name == "TUMBLE" else 3
    if not least <= len(arguments) <= WINDOW_CALLS[name]:
        remedy = _SHAPE if least == 2 else f"{_SHAPE}; HOP has its slide, CUMULATE its step before the size"
        wrong = "without a size" if len(arguments) < least else f"with {len(arguments)} arguments"
        raise error_at(text, function.call, f"{name} {wrong}", remedy)
    time, *durations = arguments[0], *(_interval(text, one) for one in arguments[1:])
    if least > 2:
        _check_steps(text, name, durations)
    step, size, *moved = [durations[0], *durations] if least == 2 else durations
    origin: exp.Expr = exp.cast(exp.Literal.string("1970-01-01"), "TIMESTAMP")
    for offset in moved:
        origin = exp.Add(this=origin, expression=offset.copy())
    start: exp.Expr = exp.DateBin(this=size.copy(), expression=time.copy(), unit=origin)
    end: exp.Expr = exp.Add(this=start.copy(), expression=size.copy())
    joins = list[exp.Expr]()
    if least > 2:
        end = exp.column(_END, _WINDOWS, quoted=True)
        start = exp.Sub(this=end.copy(), expression=size.copy()) if name == "HOP" else start
        given = [time, step, size, *moved]
        ends = exp.Anonymous(this=f"{name}_ENDS", expressions=[one.copy() for one in given])
        columns = [exp.to_identifier(_END, quoted=True)]
        alias = exp.TableAlias(this=exp.to_identifier(_WINDOWS, quoted=True), columns=columns)
        joins.append(exp.Join(this=exp.Unnest(expressions=[ends], alias=alias, offset=False), kind="CROSS"))
    shown = [exp.Star(), exp.alias_(start, "window_start"), exp.alias_(end, "window_end")]
    select = exp.Select(expressions=shown, from_=exp.From(this=exp.Table(this=table.this.copy())), joins=joins or None)
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    return standing_at(exp.Subquery(this=select, alias=alias, window=table.args.get("window")), table)


def _check_steps(text: str, name: str, durations: Sequence[exp.Expr]) -> None:
    step, size = (duration(text, one) for one in durations[:2])
    if name == "CUMULATE" and size % step:
        raise error_at(
            text,
            durations[1],
            "the size of CUMULATE is not a multiple of its step",
            "make the size a multiple of the step",
        )
    if size // step > MOST_WINDOWS:
        message = f"{size // step:,} windows of {name} contain each row, which is too many"
        raise error_at(
            text, durations[0], message, f"write a longer step: a row may be in at most {MOST_WINDOWS:,} windows"
        )


def _interval(text: str, node: exp.Expr) -> exp.Expr:
    if not node.is_string:
        return node
    return exp.Interval(this=exp.Literal.string(str(duration(text, node, least=0))), unit=exp.var("MICROSECONDS"))


_WINDOWS, _END = " windows", "end"
"""The names of the list of a row's windows and of its column, which `*` leaves out."""
