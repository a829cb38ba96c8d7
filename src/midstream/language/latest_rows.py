"""As-of joins and the first or last row of each key, written as joins and anti joins of windows.

`A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts` is the join of A with the rows of B that are no newer, and no newer row of
B lies between the two: an anti join. `QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1` over A [RANGE 1 HOUR]
keeps a row of A for which no row of its key came in the hour before: an anti join of A with itself. Of rows of one key
and one time one is taken first, by a part that ranks them. So both migrate, share state and spread as joins do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.anded import anded
from midstream.language.dialect import CqlText, statement
from midstream.language.expression import TIME_COLUMN
from midstream.language.rank_limit import rank_asked
from midstream.language.set_operations import OPERATIONS
from midstream.language.tokens import DIALECT, outside_brackets, select_list_end, tokens_of
from midstream.language.traced import Traced
from midstream.language.written import quoted, sql_of
from midstream.model.errors import LanguageError

_JOIN_WORDS = {
    TokenType.NATURAL, TokenType.ASOF, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER,
    TokenType.CROSS, TokenType.OUTER, TokenType.SEMI, TokenType.ANTI, TokenType.JOIN,
}  # fmt: skip
_ENDS_FROM = {
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.WINDOW,
    TokenType.LIMIT,
}  # fmt: skip
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_BEGINS = {TokenType.L_BRACKET: "window", TokenType.FOR: "FOR", TokenType.ALIAS: "alias"}
_CONDITIONS = {TokenType.ON, TokenType.USING}
_ASOF_SHAPE = "write A ASOF JOIN B [RANGE 5 MINUTES] ON A.k = B.k AND A.ts >= B.ts, with the timestamps of both streams"
_FIRST_SHAPE = (
    "write SELECT ... FROM A [RANGE 1 HOUR] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1, with the "
    "timestamp of the stream, for rows whose key no other had in the hour before; or with ts DESC, in the hour after"
)


@dataclass(frozen=True)
class _Item:
    """A source of FROM: the words of its join, its name or subquery, alias, window in microseconds, and condition.

    `as_of` is the time of FOR SYSTEM_TIME AS OF, `match` the condition of MATCH_CONDITION.
    """

    words: str
    table: Traced
    alias: str
    window: int | None
    at: int
    on: Traced | None = None
    using: Traced | None = None
    as_of: Traced | None = None
    match: Traced | None = None

    @property
    def is_as_of(self) -> bool:
        return "ASOF" in self.words or self.as_of is not None

    def source(self, window: int | None) -> list[Traced | str]:
        """Return its text in FROM, with a window."""
        size = "" if window is None else f" [RANGE {window} MICROSECONDS]"
        return [self.table, f" AS {quoted(self.alias)}{size}"]


def with_latest_rows(text: Traced) -> Traced:
    """Return the text of a SELECT without as-of joins, and without a rank that asks for first or last rows.

    Raises LanguageError for those that are not carried.
    """
    tokens = tokens_of(text.text)
    kinds = {token.token_type for token in tokens}
    versioned = any(token.text.upper() == "SYSTEM_TIME" for token in tokens)
    if not versioned and not kinds & {TokenType.ASOF, TokenType.QUALIFY} and not _distinct_on(tokens):
        return text
    outside = [token for token, _ in outside_brackets(tokens)]
    begin = select_list_end(outside)
    if begin is None or any(token.token_type in OPERATIONS for token in outside):
        return text
    try:
        tree = statement(text.text)
    except LanguageError:
        return text  # Who reads the whole says what is wrong.
    found = CqlText.of(text.text, tree)
    end = next(
        (t.start for t in outside if t.start > begin and (t.token_type in _ENDS_FROM or t.text.upper() == "EVERY")),
        len(text),
    )
    default = found.window.window.size if found.window is not None else None
    items = _items(text, tokens, begin, end)
    if any(item.is_as_of for item in items):
        return text.joined([text[:begin], "FROM ", *_joined(text, items, default), " ", text[end:]])
    if len(items) == 1 and found.every is None and not found.windowed:
        return _first_rows(text, outside, tree, items[0], begin, end, default)
    return text


def _distinct_on(tokens: Sequence[Token]) -> bool:
    pairs = ((one.token_type, two.token_type) for one, two in pairwise(tokens))
    return (TokenType.DISTINCT, TokenType.ON) in pairs


def _items(text: Traced, tokens: Sequence[Token], begin: int, end: int) -> list[_Item]:
    """The sources of FROM."""
    groups: list[list[Token]] = [[]]
    depth = 0
    within = [token for token in tokens if begin <= token.start < end][1:]
    for before, token in pairwise([None, *within]):
        assert token is not None
        outer = not depth
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        starts = token.token_type in _JOIN_WORDS or token.token_type == TokenType.COMMA
        if outer and starts and not (before is not None and before.token_type in _JOIN_WORDS):
            groups.append([])
        groups[-1].append(token)
    return [_item(text, group) for group in groups if group]


def _item(text: Traced, group: list[Token]) -> _Item:
    words = [t for t in group if t.token_type in _JOIN_WORDS or t.token_type == TokenType.COMMA]
    count = next((n for n, t in enumerate(group) if t not in words), len(group))
    tails, tail, depth, window = dict[str, list[Token]](), "table", 0, None
    for token in group[count:]:
        kind, name = token.token_type, token.text.upper()
        if depth:
            pass
        elif kind in _CONDITIONS or name == "MATCH_CONDITION":
            tail = name
        elif kind in _BEGINS and (tail in ("table", "alias") or (tail == "FOR" and len(tails["FOR"]) > 2)):
            tail = _BEGINS[kind]
        elif tail == "window" and tails["window"][-1].token_type == TokenType.R_BRACKET:
            tail = _BEGINS.get(kind, "alias")
        elif tail == "table" and tails.get("table") and kind in _NAMES:
            tail = "alias"
        tails.setdefault(tail, []).append(token)
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)

    def span(name: str, skipped: int = 0) -> Traced | None:
        found = tails.get(name, [])[skipped:]
        return text[found[0].start : found[-1].end + 1] if found else None

    table = span("table") or text[:0]
    named = next((t.text for t in tails.get("alias", []) if t.token_type in _NAMES), None)
    first = tails.get("table", group)[0]
    if (sized := span("window")) is not None:
        with sized.errors_placed():
            clause = statement(f"SELECT * FROM A {sized.text}").args["from_"].this.args.get("window")
        window = clause.window.size if clause is not None and clause.window.kind == "range" else None
    return _Item(
        " ".join(word.text.upper() for word in group[:count]),
        table,
        named or first.text,
        window,
        first.start,
        span("ON", 1),
        span("USING"),
        span("FOR", 4),
        span("MATCH_CONDITION", 1),
    )


def _joined(text: Traced, items: Sequence[_Item], default: int | None) -> list[Traced | str]:
    """FROM with an anti join in the place of each as-of join."""
    pieces: list[Traced | str] = []
    if items[1:] and len(items) == 2:
        # The window of the as-of join is that of B: a row of A finds its partner at its own time.
        items = [replace(items[0], window=0), items[1]]
    for at, item in enumerate(items):
        if item.is_as_of:
            pieces += _as_of(text, items[:at], item, default)
            continue
        words = f" {item.words} " if item.words not in ("", ",") else f"{item.words} "
        pieces += [words, *item.source(item.window)]
        pieces += [" ON ", item.on] if item.on is not None else []
        pieces += [" USING ", item.using] if item.using is not None else []
    return pieces


def _as_of(text: Traced, before: Sequence[_Item], item: _Item, default: int | None) -> list[Traced | str]:
    size, words = item.window if item.window is not None else default, item.words.replace("ASOF ", "")

    def refused(message: str, remedy: str = _ASOF_SHAPE) -> LanguageError:
        if item.as_of is not None:
            remedy += "; for a static table leave FOR SYSTEM_TIME AS OF out: a row meets the version that stands"
        return LanguageError(message, place=text.place(item.at), remedy=remedy)

    if not before or any(word in words for word in ("RIGHT", "FULL", "SEMI", "ANTI", "NATURAL")) or "," in words:
        raise refused("an as-of join other than JOIN and LEFT JOIN")
    if size is None:
        raise refused(
            f"an as-of join of {item.alias!r} without a window", f"{_ASOF_SHAPE}; or WINDOW n unit at the end"
        )
    keys, time, strict, own_time = _asked(item, before[0], refused)
    alias, later = quoted(item.alias), quoted(_free(f"{item.alias}_later", before))
    own_keys = [sql_of(own) for own, _ in keys]
    base = text.joined(
        [
            "(SELECT * FROM ",
            item.table,
            f" AS {alias} QUALIFY ROW_NUMBER() OVER (PARTITION BY {', '.join([*own_keys, own_time])}) = 1)",
        ]
    )

    def tie(source: str) -> str:
        named = {item.alias.lower(): source}
        equal = [f"{_renamed(own, named)} = {sql_of(other)}" for own, other in keys]
        sign = "<" if strict else "<="
        bounds = [f"{source}.{TIME_COLUMN} {sign} {time}"]
        bounds += [f"{source}.{TIME_COLUMN} >= {time} - INTERVAL {size} MICROSECONDS"]
        return " AND ".join([*equal, *bounds])

    sized = f" [RANGE {size} MICROSECONDS]"
    new: list[Traced | str] = [
        f" {words} ",
        base,
        f" AS {alias}{sized} ON ({tie(alias)}) ANTI JOIN ",
        base,
        f" AS {later}{sized} ON (",
    ]
    return [*new, f"{tie(later)} AND {later}.{TIME_COLUMN} > {alias}.{TIME_COLUMN})"]


def _free(name: str, items: Sequence[_Item]) -> str:
    while any(item.alias.lower() == name.lower() for item in items):
        name += "_"
    return name


Keys = list[tuple[exp.Expr, exp.Expr]]


def _asked(item: _Item, first: _Item, refused: Callable[[str], LanguageError]) -> tuple[Keys, str, bool, str]:
    """Return the sides of the equalities, that of the item first, the time that counts, whether it is excluded, and
    what the item's own time is called.
    """
    own_time = f"{quoted(item.alias)}.{TIME_COLUMN}"
    if item.using is not None:
        names = [one.text for one in tokens_of(item.using.text) if one.token_type in _NAMES]
        ours, theirs = (
            [
                exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(one.alias, quoted=True))
                for name in names
            ]
            for one in (item, first)
        )
        if item.as_of is not None:
            return list(zip(ours, theirs, strict=True)), item.as_of.text, False, own_time
        return list(zip(ours[:-1], theirs[:-1], strict=True)), sql_of(theirs[-1]), False, sql_of(ours[-1])
    said = " AND ".join(f"({one.text})" for one in (item.on, item.match) if one is not None)
    keys, time, strict = Keys(), "" if item.as_of is None else item.as_of.text, False
    try:
        parts = list(anded(sqlglot.parse_one(said, read=DIALECT))) if said else []
    except (ParseError, IndexError):
        raise refused("the condition of an as-of join is no SQL") from None
    for part in parts:
        part = part.unnest()
        left, right = part.this, part.args.get("expression")
        own, other = (left, right) if _reads(left, item) else (right, left)
        turned = own is right
        if own is None or other is None or not _reads(own, item) or _reads(other, item):
            raise refused("a condition of an as-of join that does not compare both sides")
        if isinstance(part, exp.EQ):
            keys.append((own, other))
        elif not time and isinstance(part, (exp.LTE, exp.LT) if not turned else (exp.GTE, exp.GT)):
            time, strict, own_time = sql_of(other), isinstance(part, exp.LT | exp.GT), sql_of(own)
        else:
            raise refused("a condition of an as-of join that is no equality, and not that B.ts is no later than A.ts")
    if not time:
        raise refused("an as-of join that compares no times")
    return keys, time, strict, own_time


def _reads(node: exp.Expr | None, item: _Item) -> bool:
    columns = node.find_all(exp.Column) if node is not None else ()
    return any(column.table.lower() == item.alias.lower() for column in columns)


def _renamed(node: exp.Expr, named: dict[str, str]) -> str:
    """Return the text of an expression over sources under other names, which are quoted."""

    def other(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and part.table.lower() in named:
            part.set("table", exp.to_identifier(named[part.table.lower()][1:-1].replace('""', '"'), quoted=True))
        return part

    return sql_of(node.copy().transform(other))


def _first_rows(
    text: Traced, tokens: Sequence[Token], tree: exp.Expr, item: _Item, begin: int, end: int, default: int | None
) -> Traced:
    """The SELECT of each key's first or last row as an anti join; any other as it is."""
    if not isinstance(tree, exp.Select):
        return text
    distinct, qualify, order = tree.args.get("distinct"), tree.args.get("qualify"), tree.args.get("order")
    on = distinct.args.get("on") if distinct is not None else None
    size = item.window if item.window is not None else default
    place = text.place(item.at)
    if on is not None:
        keys = [key.unnest() for key in (on.expressions if isinstance(on, exp.Tuple) else [on])]
        ordered = [one for one in (order.expressions if order is not None else []) if one.this not in keys]
        if qualify is not None or len(ordered) > 1:
            raise LanguageError("DISTINCT ON in another order than that of time", place=place, remedy=_FIRST_SHAPE)
        time = ordered[0] if ordered else exp.Ordered(this=exp.column(TIME_COLUMN, item.alias, quoted=True))
        select = next(token.start for token in tokens if token.token_type == TokenType.SELECT)
        listed = text[_behind_distinct_on(text, select) : begin]
        head = text.joined([text[:select], "SELECT ", listed])
    else:
        asked = None if qualify is None else rank_asked(qualify.this, _ranks(tree))
        if asked is None or asked.count != 1 or asked.others or not isinstance(asked.window.this, exp.RowNumber):
            return text
        keys, by = list(asked.window.args.get("partition_by") or []), asked.window.args.get("order")
        if by is None or len(by.expressions) != 1 or size is None or tree.args.get("group") is not None:
            return text
        if any(one.find(exp.Window) for one in tree.expressions):
            raise LanguageError("the rank of a row, which is always 1", place=place, remedy="leave it out")
        time, head = by.expressions[0], text[:begin]
    if size is None:
        raise LanguageError("the first row of a key for ever", place=place, remedy=_FIRST_SHAPE)
    where = tree.args.get("where")
    alias, other, last = quoted(item.alias), quoted(f"{item.alias}_other"), bool(time.args.get("desc"))
    asked_of = [sql_of(one) for one in (*keys, time.this)]
    filtered: list[Traced | str] = []
    if where is not None:
        filtered = [" WHERE ", text[_first(tokens, TokenType.WHERE) + 5 : _behind_where(tokens, len(text))]]
    ranked = f" QUALIFY ROW_NUMBER() OVER (PARTITION BY {', '.join(asked_of)}) = 1)"
    base = text.joined(["(SELECT * FROM ", item.table, f" AS {alias}", *filtered, ranked])
    named = {item.alias.lower(): other}
    same = [f"{_renamed(_of(k, item), named)} IS NOT DISTINCT FROM {sql_of(_of(k, item))}" for k in keys]
    own, beside = f"{alias}.{TIME_COLUMN}", f"{other}.{TIME_COLUMN}"
    bounds = [f"{beside} < {own}", f"{beside} >= {own} - INTERVAL {size} MICROSECONDS"]
    if last:
        bounds = [f"{beside} > {own}", f"{beside} <= {own} + INTERVAL {size} MICROSECONDS"]
    tie = " AND ".join([*same, *bounds])
    return text.joined([head, "FROM ", base, f" AS {alias} ANTI JOIN ", base, f" AS {other} ON {tie}"])


def _ranks(tree: exp.Select) -> dict[str, exp.Expr]:
    return {item.alias: item.unalias() for item in tree.expressions if item.alias}


def _of(node: exp.Expr, item: _Item) -> exp.Expr:
    """An expression with its columns given to the only source."""

    def given(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table:
            part.set("table", exp.to_identifier(item.alias, quoted=True))
        return part

    return node.copy().transform(given)


def _first(tokens: Sequence[Token], kind: TokenType) -> int:
    return next(int(token.start) for token in tokens if token.token_type == kind)


def _behind_where(tokens: Sequence[Token], end: int) -> int:
    start = _first(tokens, TokenType.WHERE)
    return next((int(t.start) for t in tokens if t.start > start and t.token_type in _ENDS_FROM), end)


def _behind_distinct_on(text: Traced, select: int) -> int:
    tokens = [token for token in tokens_of(text.text) if token.start >= select]
    at = next(n for n, token in enumerate(tokens) if token.token_type == TokenType.ON)
    depth = 0
    for token in tokens[at + 1 :]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if not depth:
            return int(token.end) + 1
    return select
