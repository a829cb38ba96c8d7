"""As-of joins and the first or last row of each key, written as joins and anti joins of windows.

`A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts` is the join of A with the rows of B that are no newer, and no newer row of
B lies between the two: an anti join. `QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1` over A [RANGE 1 HOUR]
keeps a row of A for which no row of its key came in the hour before: an anti join of A with itself. Of rows of one key
and one time one is taken first, by a part that ranks them. So both migrate, share state and spread as joins do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN
from midstream.model.errors import LanguageError
from midstream.model.window import Window
from midstream.sql.dialect import CqlText, WindowClause
from midstream.sql.place import error_at, offset_above, standing_at
from midstream.sql.sql_tree import anded
from midstream.sql.top_n_clause import is_rank, rank_asked, select_of

ASOF_SHAPE = "write A ASOF JOIN B [RANGE 5 MINUTES] ON A.k = B.k AND A.ts >= B.ts, with the timestamps of both streams"
_FIRST_SHAPE = (
    "write SELECT ... FROM A [RANGE 1 HOUR] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1, with the "
    "timestamp of the stream, for rows whose key no other had in the hour before; or with ts DESC, in the hour after"
)


def with_latest_rows(text: str, tree: exp.Select) -> exp.Select:
    """Return a SELECT without as-of joins, and without a rank that asks for first or last rows; any other as it is.

    Raises LanguageError for a form that midstream does not support.
    """
    if tree.args.get("from_") is None or tree.args.get("subtrahends"):
        return tree
    tree = _with_numbers_qualified(_without_laterals(text, tree))
    joins = tree.args.get("joins") or []
    # Those without a window are of static tables.
    if any(_is_as_of(join) and _size(join.this, tree) is not None for join in joins):
        return _without_as_of(text, tree.copy())
    if any(map(_is_as_of, joins)):
        return tree
    asks = tree.args.get("qualify") is not None or (tree.args.get("distinct") and tree.args["distinct"].args.get("on"))
    found = CqlText.of(text, tree)
    if not asks or joins or found.every is not None or found.windowed is not None:
        return tree
    return _first_rows(text, tree)


def _is_as_of(join: exp.Expr) -> bool:
    return str(join.args.get("method") or "").upper() == "ASOF" or bool(join.this.args.get("version"))


def _without_laterals(text: str, tree: exp.Select) -> exp.Select:
    """Return the SELECT with an as-of join in the place of each LATERAL that takes the latest row of a stream."""
    joins = tree.args.get("joins") or []
    if not any(map(_is_lateral, joins)):
        return tree
    tree = tree.copy()
    tree.set("joins", [_as_of_join(text, tree, j) if _is_lateral(j) else j for j in tree.args["joins"]])
    return tree


def _is_lateral(join: exp.Expr) -> bool:
    # LATERAL of lists is UNNEST.
    return isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery)


def _as_of_join(text: str, tree: exp.Select, join: exp.Expr) -> exp.Expr:
    lateral, side = join.this, join.text("side").upper()
    select = lateral.this.this if isinstance(lateral.this, exp.Subquery) else None
    order = select.args.get("order") if isinstance(select, exp.Select) else None
    on, alias = join.args.get("on"), lateral.alias
    asks = {key for key, value in select.args.items() if value} if isinstance(select, exp.Select) else set()
    plain = select is not None and asks == {"expressions", "from_", "where", "order", "limit"}
    if (
        select is None
        or order is None
        or not plain
        or not alias
        or side not in ("", "LEFT")
        or not (on is None or on == exp.true())
    ):
        raise error_at(text, lateral, "LATERAL must take the latest row of a stream", _LATERAL_SHAPE)
    by, source = order.expressions, select.args["from_"].this
    latest = len(by) == 1 and by[0].args.get("desc") and select.args["limit"].expression == exp.Literal.number(1)
    kept, ties, shown = list[exp.Expr](), list[exp.Expr](), list[exp.Expr](select.expressions)
    for part in anded(select.args["where"].this):
        left, right = part.this, part.args.get("expression")
        around = [_reads_only_around(side, source.alias_or_name) for side in (left, right)]
        if not any(around):
            kept.append(part)
            continue
        own = right if around[0] else left
        timed = isinstance(part, (exp.GTE, exp.GT) if around[0] else (exp.LTE, exp.LT)) and own == by[0].this
        if all(around) or not (isinstance(part, exp.EQ) or timed) or not isinstance(own, exp.Column):
            raise error_at(
                text,
                part,
                "a condition in LATERAL must compare a column of the inner stream with a column from outside LATERAL",
                _LATERAL_SHAPE,
            )
        title = f"{own.name}" if _shows(shown, own) else f"{alias}_{own.name}_{len(ties)}"
        if not _shows(shown, own):
            shown.append(exp.alias_(own.copy(), title, quoted=True))
        tie = part.copy()
        tie.set("expression" if around[0] else "this", exp.column(title, alias, quoted=True))
        ties.append(tie)
        latest = latest if not timed else latest and "time"
    if latest != "time":
        raise error_at(text, lateral, "LATERAL must take the latest row of a stream", _LATERAL_SHAPE)
    if len(shown) > len(select.expressions) and any(item.is_star for item in tree.expressions):
        remedy = "name the columns, or select all in LATERAL: (SELECT * FROM B ...)"
        raise error_at(text, lateral, "SELECT * needs a LATERAL that selects the columns in its conditions", remedy)
    below = exp.Select(expressions=[one.copy() for one in shown], from_=exp.From(this=source.copy()))
    below.args["from_"].this.set("window", None)
    if kept:
        below.set("where", exp.Where(this=exp.and_(*kept)))
    named = exp.Subquery(this=below, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    named.set("window", source.args.get("window"))
    return exp.Join(this=standing_at(named, source), on=exp.and_(*ties), side=side or None, method="ASOF")


def _reads_only_around(node: exp.Expr | None, alias: str) -> bool:
    columns = [*node.find_all(exp.Column)] if isinstance(node, exp.Expr) else []
    return bool(columns) and all(column.table and column.table.lower() != alias.lower() for column in columns)


def _shows(items: Sequence[exp.Expr], column: exp.Column) -> bool:
    return any(item.is_star or (item.unalias() == column and item.alias_or_name == column.name) for item in items)


_LATERAL_SHAPE = (
    "write A JOIN LATERAL (SELECT ... FROM B [RANGE 5 MINUTES] WHERE B.k = A.k AND B.ts <= A.ts ORDER BY B.ts DESC "
    "LIMIT 1) AS x ON TRUE, or A ASOF JOIN B"
)


def _sized(source: exp.Expr, size: int) -> exp.Expr:
    source.set("window", WindowClause(offset_above(source), Window("range", size)))
    return source


def _size(source: exp.Expr, tree: exp.Select) -> int | None:
    clause: WindowClause | None = source.args.get("window")
    clause = tree.args.get("window") if clause is None or clause.window.kind != "range" else clause
    return None if clause is None else clause.window.size


def _without_as_of(text: str, tree: exp.Select) -> exp.Select:
    """Return the SELECT with a join and an anti join in the place of each as-of join."""
    first, joins, made = tree.args["from_"].this, tree.args["joins"], list[exp.Expr]()
    if len(joins) == 1:
        # The window of the as-of join is that of B: a row of A finds its partner at its own time.
        _sized(first, 0)
    for at, join in enumerate(joins):
        before = [first, *(one.this for one in joins[:at])]
        sized = _is_as_of(join) and _size(join.this, tree) is not None
        made += _as_of(text, tree, before, join) if sized else [join]
    tree.set("joins", made)
    return tree


def _as_of(text: str, tree: exp.Select, before: Sequence[exp.Expr], join: exp.Expr) -> list[exp.Expr]:
    source = join.this
    size, alias, (side, kind) = _size(source, tree), source.alias_or_name, (join.text("side"), join.text("kind"))

    def refused(message: str) -> LanguageError:
        return error_at(text, source, message, ASOF_SHAPE)

    natural = join.text("method").upper() == "NATURAL"
    if side.upper() in ("RIGHT", "FULL") or kind.upper() in ("SEMI", "ANTI") or natural or _is_comma(join):
        raise refused("an as-of join must be JOIN or LEFT JOIN")
    assert size is not None
    keys, time, strict, own_time = _asked(join, before[0], refused)
    base = _one_of_a_time(source, [*(own for own, _ in keys), own_time])

    def tie(name: str) -> exp.Expr:
        equal = [exp.EQ(this=_renamed(own, alias, name), expression=other.copy()) for own, other in keys]
        own = _time_of(name, source)
        earlier = (exp.LT if strict else exp.LTE)(this=own, expression=time.copy())
        return exp.and_(*equal, earlier, exp.GTE(this=own.copy(), expression=_moved(exp.Sub, time, size)), wrap=False)

    later, names = f"{alias}_later", [one.alias_or_name.lower() for one in before]
    while later.lower() in names:
        later += "_"
    newer = exp.and_(
        tie(later), exp.GT(this=_time_of(later, source), expression=_time_of(alias, source)), wrap=False, copy=False
    )
    return [
        exp.Join(this=_named(base, alias, size), on=tie(alias), side=side or None, kind=kind or None),
        exp.Join(this=_named(base, later, size), on=newer, kind="ANTI"),
    ]


def _is_comma(join: exp.Expr) -> bool:
    return not any(join.args.get(key) for key in ("method", "side", "kind", "on", "using", "match_condition"))


def _one_of_a_time(source: exp.Expr, keys: Sequence[exp.Expr], where: exp.Expr | None = None) -> exp.Select:
    """Return the SELECT of the rows of a source of which one is taken of those that are equal in some values."""
    table = source.copy()
    for key in ("version", "window"):
        table.set(key, None)
    table.set("alias", exp.TableAlias(this=standing_at(exp.to_identifier(source.alias_or_name, quoted=True), source)))
    window = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys], over="OVER")
    first = exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1)))
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), qualify=first)
    if where is not None:
        select.set("where", where.copy())
    return select


def _named(select: exp.Select, alias: str, size: int | None = None) -> exp.Expr:
    name = standing_at(exp.to_identifier(alias, quoted=True), select)
    subquery = exp.Subquery(this=select.copy(), alias=exp.TableAlias(this=name))
    return subquery if size is None else _sized(subquery, size)


def _time_of(alias: str, source: exp.Expr) -> exp.Expr:
    return standing_at(exp.column(TIME_COLUMN, exp.to_identifier(alias, quoted=True)), source)


def _moved(sign: type[exp.Expr], time: exp.Expr, size: int) -> exp.Expr:
    interval = exp.Interval(this=exp.Literal.string(str(size)), unit=exp.var("MICROSECONDS"))
    return sign(this=time.copy(), expression=interval)


Keys = list[tuple[exp.Expr, exp.Expr]]


def _asked(
    join: exp.Expr, first: exp.Expr, refused: Callable[[str], LanguageError]
) -> tuple[Keys, exp.Expr, bool, exp.Expr]:
    """Return the sides of the equalities, that of the joined source first, the time that counts, whether it is
    excluded, and the source's own time.
    """
    source, alias = join.this, join.this.alias_or_name
    version, own_time = source.args.get("version"), _time_of(alias, source)
    time: exp.Expr | None = None if version is None else version.expression
    if join.args.get("using"):
        pairs = [(_of(name, alias), _of(name, first.alias_or_name)) for name in join.args["using"]]
        if time is not None:
            return pairs, time, False, own_time
        return pairs[:-1], pairs[-1][1], False, pairs[-1][0]
    keys, strict = Keys(), False
    said = [join.args[key] for key in ("on", "match_condition") if join.args.get(key) is not None]
    for part in (part.unnest() for one in said for part in anded(one)):
        left, right = part.this, part.args.get("expression")
        own, other = (left, right) if _reads(left, alias) else (right, left)
        turned = own is right
        if own is None or other is None or not _reads(own, alias) or _reads(other, alias):
            raise refused("a condition of an as-of join must compare a column of one side with a column of the other")
        if isinstance(part, exp.EQ):
            keys.append((own, other))
        elif time is None and isinstance(part, (exp.LTE, exp.LT) if not turned else (exp.GTE, exp.GT)):
            time, strict, own_time = other, isinstance(part, exp.LT | exp.GT), own
        else:
            raise refused("a condition of an as-of join must be an equality or A.ts >= B.ts")
    if time is None:
        raise refused("an as-of join must compare two times")
    return keys, time, strict, own_time


def _reads(node: exp.Expr | None, alias: str) -> bool:
    columns = node.find_all(exp.Column) if isinstance(node, exp.Expr) else ()
    return any(column.table.lower() == alias.lower() for column in columns)


def _renamed(node: exp.Expr, alias: str, name: str) -> exp.Expr:
    node = node.copy()
    for column in node.find_all(exp.Column):
        if column.table.lower() == alias.lower():
            column.set("table", exp.to_identifier(name, quoted=True))
    return node


def _of(node: exp.Expr, alias: str) -> exp.Expr:
    if isinstance(node, exp.Identifier):
        node = standing_at(exp.column(exp.to_identifier(node.name, quoted=True)), node)
    node = node.copy()
    for column in node.find_all(exp.Column):
        if not column.table:
            column.set("table", exp.to_identifier(alias, quoted=True))
    return node


def _with_numbers_qualified(tree: exp.Select) -> exp.Select:
    """Write QUALIFY into each subquery of FROM of which WHERE takes the rows that ROW_NUMBER gives the number 1.

    The number is the constant that it then is.
    """
    where = tree.args.get("where")
    if where is None or tree.args.get("every") is not None:
        return tree
    sources = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
    if not any((below := select_of(source, tree)) is not None and _numbers(below) for source in sources):
        return tree
    tree = tree.copy()
    where = tree.args["where"]
    for source in [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]:
        select = select_of(source, tree)
        item = None if select is None else _numbers(select)
        if select is None or item is None or not _takes_first(where.this, source, item):
            continue
        uses = [one for one in tree.find_all(exp.Table) if one.name.lower() == source.name.lower()]
        if isinstance(source, exp.Table) and len(uses) > 1:
            continue
        if _size(select.args["from_"].this, select) is None:
            select.set("window", tree.args.get("window"))
        if _size(select.args["from_"].this, select) is None:
            continue  # Perhaps the rows of one moment are numbered.
        rank = item.this.copy()
        item.set("this", standing_at(exp.cast(exp.Literal.number(1), "BIGINT"), item))
        select.set("qualify", exp.Qualify(this=exp.EQ(this=rank, expression=exp.Literal.number(1))))
    return tree


def _numbers(select: exp.Select) -> exp.Alias | None:
    """Return the item of a SELECT that numbers rows, if it is the only window function and has a name."""
    if select.args.get("from_") is None or any(select.args.get(key) for key in _NUMBERS_MORE):
        return None
    found = [item for item in select.expressions if item.find(exp.Window)]
    alone = len(found) == 1 and isinstance(found[0], exp.Alias) and is_rank(found[0].this)
    return found[0] if alone and isinstance(found[0].this.this, exp.RowNumber) else None


_NUMBERS_MORE = ("joins", "group", "having", "qualify", "distinct", "every", "subtrahends")


def _takes_first(where: exp.Expr, source: exp.Expr, item: exp.Alias) -> bool:
    """Return whether a condition holds only of rows of a source that its numbers give 1."""
    names = {"", source.alias_or_name.lower()}

    def written_out(node: exp.Expr) -> exp.Expr:
        named = isinstance(node, exp.Column) and node.name.lower() == item.alias.lower() and node.table.lower() in names
        return item.this.copy() if named else node

    asked = rank_asked(where.copy().transform(written_out), {})
    return asked is not None and asked.count == 1 and item.this.args.get("order") is not None


def _first_rows(text: str, tree: exp.Select) -> exp.Select:
    """Return the SELECT of each key's first or last row as an anti join; any other as it is."""
    distinct, qualify, order = tree.args.get("distinct"), tree.args.get("qualify"), tree.args.get("order")
    on = distinct.args.get("on") if distinct is not None else None
    source = tree.args["from_"].this
    size, alias = _size(source, tree), source.alias_or_name
    if on is not None:
        keys = [key.unnest() for key in (on.expressions if isinstance(on, exp.Tuple) else [on])]
        ordered = [one for one in (order.expressions if order is not None else []) if one.this not in keys]
        if qualify is not None or len(ordered) > 1:
            raise error_at(
                text,
                source,
                "a query with DISTINCT ON must order by its keys and one time, and cannot have QUALIFY",
                _FIRST_SHAPE,
            )
        time = ordered[0] if ordered else exp.Ordered(this=_time_of(alias, source))
    else:
        named = {item.alias: item.unalias() for item in tree.expressions if item.alias}
        asked = None if qualify is None else rank_asked(qualify.this, named)
        if asked is None or asked.count != 1 or asked.others or not isinstance(asked.window.this, exp.RowNumber):
            return tree
        keys, by = list(asked.window.args.get("partition_by") or []), asked.window.args.get("order")
        if by is None or len(by.expressions) != 1 or size is None or tree.args.get("group") is not None:
            return tree
        if any(one.find(exp.Window) for one in tree.expressions):
            raise error_at(text, source, "the rank would be 1 in every row", "leave the rank out")
        time = by.expressions[0]
    if size is None:
        raise error_at(
            text,
            source,
            "a query for the first row of each key needs a window, because the query cannot keep keys forever",
            _FIRST_SHAPE,
        )
    other = f"{alias}_other"
    base = _one_of_a_time(source, [*keys, time.this], tree.args.get("where"))
    same = [_of(key, alias) for key in keys]
    tie: list[exp.Expr] = [exp.NullSafeEQ(this=_renamed(one, alias, other), expression=one) for one in same]
    own, beside = _time_of(alias, source), _time_of(other, source)
    if time.args.get("desc"):
        tie += [exp.GT(this=beside, expression=own), exp.LTE(this=beside, expression=_moved(exp.Add, own, size))]
    else:
        tie += [exp.LT(this=beside, expression=own), exp.GTE(this=beside, expression=_moved(exp.Sub, own, size))]
    return exp.Select(
        with_=tree.args.get("with_"),
        expressions=tree.expressions,
        from_=exp.From(this=_named(base, alias)),
        joins=[exp.Join(this=_named(base, other), on=exp.and_(*tie, wrap=False), kind="ANTI")],
    ).copy()
