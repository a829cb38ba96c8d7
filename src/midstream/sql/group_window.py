"""Windows that rows are grouped by: TUMBLE, HOP, CUMULATE and SESSION as Flink writes them, `window` as Spark does.

A window `[start, end)` starts at each multiple of its slide and is as long as its size; a tumbling window's slide is
its size. Its group is an aggregate at the window's last instant, a microsecond before its end, over the rows that are
less than a size old: so the words are rewritten to what the engine knows, a RANGE window and EVERY.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from typing_extensions import override

from midstream.expr.duration import parse_duration
from midstream.expr.expression import TIME_COLUMN, Column
from midstream.logical.query import GROUPED, START, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText, WindowFunction
from midstream.sql.place import error_at, place
from midstream.sql.sql_tree import sql_of

WINDOW_CALLS = {"TUMBLE": 3, "HOP": 4, "CUMULATE": 4, "WINDOW": 4, "SESSION": 2, "SESSION_WINDOW": 2}
"""By name the most arguments: the timestamp and durations, the last of which may be how far windows are moved. HOP
gives its slide first, CUMULATE its step, Spark's `window` its size.
"""

FIELDS = ("WINDOW", "SESSION_WINDOW")
"""The windows of Spark, whose bounds are fields."""

_BOUNDS = ("start", "end")


def is_window_call(node: exp.Expr) -> bool:
    """Whether an expression of GROUP BY is a window.

    >>> is_window_call(exp.Anonymous(this="TUMBLE")), is_window_call(exp.column("k"))
    (True, False)
    """
    return isinstance(node, exp.Anonymous) and node.name.upper() in WINDOW_CALLS


def is_window_function(node: exp.Expr) -> bool:
    """Whether an expression is a window, or the bound of one that has the same arguments.

    >>> is_window_function(exp.Anonymous(this="TUMBLE_END")), is_window_function(exp.Anonymous(this="F"))
    (True, False)
    """
    base, _, bound = node.name.lower().rpartition("_")
    bounding = isinstance(node, exp.Anonymous) and base in ("tumble", "hop", "cumulate", "session") and bound in _BOUNDS
    return bounding or is_window_call(node)


def is_window_bound(node: exp.Expr) -> bool:
    """Whether an item of the select list says which window it is: `window_end`, `window.end`, `TUMBLE_END(...)`, `_ts`.

    >>> is_window_bound(exp.column("window_end")), is_window_bound(exp.column("k"))
    (True, False)
    """
    name = node.name.lower()
    if isinstance(node, exp.Column):
        return name in ("window_start", "window_end", TIME_COLUMN) or (node.table.upper() in FIELDS and name in _BOUNDS)
    return is_window_function(node) and not is_window_call(node)


_BOUNDS_WINDOW = {"window_start": "start", "window_end": "end"}
_SHAPES = (
    "TUMBLE(ts, size), HOP(ts, slide, size), CUMULATE(ts, step, size), window(ts, size, slide) or SESSION(ts, gap)"
)
_SESSIONS = ("SESSION", "SESSION_WINDOW")


@dataclass(frozen=True)
class GroupWindow:
    """`[start, start + size)` for each `start` that is `moved` behind a multiple of the slide; all in microseconds."""

    size: int
    slide: int
    node: exp.Expr
    moved: int = 0

    @property
    def offset(self) -> int:
        """How long after a multiple of the slide a window's last instant is."""
        return (self.size + self.moved) % self.slide - 1

    def window(self) -> Window:
        """The window of rows that are in the group at the group window's last instant."""
        return Window("range", self.size - 1)

    def boundary(self, name: str) -> exp.Expr:
        """The `start` or `end` of a result, of which the time is the window's last instant."""
        past = 1 if name == "end" else 1 - self.size
        duration = exp.Interval(this=exp.Literal.string(str(past)), unit=exp.Var(this="MICROSECONDS"))
        return exp.Paren(this=exp.Add(this=exp.column(TIME_COLUMN), expression=duration))


@dataclass(frozen=True)
class CumulativeWindow(GroupWindow):
    """`[start, start + n * slide)` for each window `[start, start + size)` that tumbles, and each n up to its whole."""

    @override
    def boundary(self, name: str) -> exp.Expr:
        return exp.column(START, GROUPED, quoted=True) if name == "start" else super().boundary(name)


def group_window(
    found: CqlText,
    tree: exp.Select,
    binder: Binder,
    sources: tuple[Source, ...],
    streams: Mapping[str, StreamSchema],
) -> tuple[exp.Select, tuple[Source, ...], GroupWindow | SessionWindow | None]:
    """The query without its group window, its source with the window in time that keeps the rows, and the group window.

    Raises LanguageError for two group windows, for one over a join, and for one next to another window or EVERY.
    """
    if found.windowed is not None:
        tree = _with_function(found, tree, found.windowed)
    clause = tree.args.get("group")
    calls = [] if clause is None else [node for node in clause.expressions if _name(node) in WINDOW_CALLS]
    if clause is None or not calls:
        own = (node for node in tree.find_all(exp.Anonymous) if node.find_ancestor(exp.With) is None)
        stray = next((node for node in own if _name(node) in WINDOW_CALLS), None)
        if stray is not None:
            raise error_at(found.text, stray, f"{_shown(stray)} must be in GROUP BY", f"group by {_SHAPES}")
        return tree, sources, None
    node = calls[0]
    _check(found, calls, sources)
    made = _read(found, node, binder, sources, streams)
    rewritten = tree.copy()
    rewritten.args["group"].set("expressions", [part for part in clause.expressions if part is not node])
    rewritten.set("expressions", [_item(found, part, made, binder) for part in rewritten.expressions])
    having = rewritten.args.get("having")
    if having is not None:
        rewritten.set("having", having.transform(_bounds(found, made, binder)))
    return rewritten, (replace(sources[0], window=made.window()),), made


def _with_function(found: CqlText, tree: exp.Select, windowed: WindowFunction) -> exp.Select:
    """Rewrite a query over TABLE(TUMBLE(...)): group it by the window of `window_start` and `window_end`."""

    def plain(node: exp.Expr) -> exp.Expr:
        named = isinstance(node, exp.Column) and node.name.lower() in _BOUNDS_WINDOW
        return exp.column(node.name.lower()) if named else node

    rewritten = tree.copy()
    for key in ("having", "where"):
        if rewritten.args.get(key) is not None:
            rewritten.set(key, rewritten.args[key].transform(plain))
    rewritten.set("expressions", [item.transform(plain) for item in rewritten.expressions])
    clause = rewritten.args.get("group")
    groups = [node.transform(plain) for node in clause.expressions] if clause is not None else []
    others = [node for node in groups if not (isinstance(node, exp.Column) and node.name in _BOUNDS_WINDOW)]
    sessions = windowed.call.name.upper() == "SESSION"
    if sessions and sorted(windowed.partition) != sorted(node.name.upper() for node in others):
        remedy = "name in PARTITION BY, after the stream, the columns that GROUP BY names in addition to the window"
        raise error_at(found.text, tree, "PARTITION BY and GROUP BY must name the same columns", remedy)
    if len(others) == len(groups):
        remedy = "GROUP BY window_start, window_end; or PARTITION BY them"
        raise error_at(found.text, tree, f"a query with {sql_of(windowed.call)} must group by the windows", remedy)
    rewritten.set("group", exp.Group(expressions=[windowed.call.copy(), *others]))
    return rewritten


def _check(found: CqlText, calls: list[exp.Expr], sources: tuple[Source, ...]) -> None:
    if len(calls) > 1:
        raise error_at(found.text, calls[1], "GROUP BY can have only one window", "group by one window")
    if found.every is not None:
        remedy = "leave EVERY out: the answer comes when the watermark passes the window's end"
        what = f"EVERY cannot be in a query with {_shown(calls[0])}"
        raise LanguageError(what, place=place(found.text, found.every[1]), remedy=remedy)
    if len(sources) > 1:
        raise error_at(
            found.text,
            calls[0],
            f"{_shown(calls[0])} can group the rows of one stream, but not the rows of a join or of EXCEPT",
            "to group by the time of a join's results, write GROUP BY TUMBLE(_ts, INTERVAL '10' MINUTES); to group by "
            "the time of one stream, write its timestamp instead of _ts; "
            "group the change log of a difference in a second query",
        )
    if sources[0].window is not None:
        raise error_at(
            found.text,
            calls[0],
            f"{_shown(calls[0])} cannot group a stream that has a window",
            "leave out [...] and WINDOW",
        )


def _read(
    found: CqlText,
    node: exp.Expr,
    binder: Binder,
    sources: tuple[Source, ...],
    streams: Mapping[str, StreamSchema],
) -> GroupWindow | SessionWindow:
    name, arguments = _name(node), node.expressions
    if not (3 if name in ("HOP", "CUMULATE") else 2) <= len(arguments) <= WINDOW_CALLS[name]:
        raise error_at(found.text, node, f"{_shown(node)} does not take {len(arguments)} arguments", f"write {_SHAPES}")
    stream = streams[sources[0].stream]
    time = _time(arguments[0], sources[0], stream)
    column = binder.bind(time)
    if not isinstance(column, Column) or column.name != stream.timestamp:
        remedy = f"write {stream.timestamp}, the timestamp that stream {stream.name} is declared with"
        raise error_at(found.text, arguments[0], f"{_shown(node)} needs an event time", remedy)
    most = 2 if name == "TUMBLE" else 3
    durations = [duration(found.text, argument) for argument in arguments[1:most]]
    if name in _SESSIONS:
        return SessionWindow(durations[0], node)
    first_is_slide = name in ("HOP", "CUMULATE")
    size, slide = (durations[-1], durations[0]) if first_is_slide else (durations[0], durations[-1])
    if name == "CUMULATE" and size % slide:
        raise error_at(
            found.text,
            node,
            "the size of CUMULATE is not a multiple of its step",
            "make the size a multiple of the step",
        )
    kind = CumulativeWindow if name == "CUMULATE" and size > slide else GroupWindow
    return kind(size, slide, node, sum(duration(found.text, one, least=0) for one in arguments[most:]))


def _time(node: exp.Expr, source: Source, stream: StreamSchema) -> exp.Expr:
    """Return the time that a window is over. `_ts`, the time of a query's answers, is the timestamp of their stream."""
    asked = isinstance(node, exp.Column) and not node.table and node.name == TIME_COLUMN
    return exp.column(stream.timestamp, source.alias, quoted=True) if asked and stream.answers_of else node


def duration(sql: str, node: exp.Expr, least: int = 1) -> int:
    """Return the microseconds of an interval, or of a text such as '10 minutes', in a query; raises LanguageError."""
    text = node.name if isinstance(node, exp.Literal) and node.is_string else ""
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        text = f"{node.this.name} {node.text('unit')}"
    try:
        length = parse_duration(text, what="the window")
    except LanguageError as error:
        raise error_at(sql, node, error.message, "write INTERVAL '10' MINUTES, or '10 minutes'") from error
    if length < least:
        raise error_at(sql, node, "a window must have a length", "use a duration above zero")
    return length


def _item(found: CqlText, node: exp.Expr, made: GroupWindow | SessionWindow, binder: Binder) -> exp.Expr:
    """Return an item of the select list; a bare boundary is called `window_start` or `window_end`."""
    if (name := _boundary(found, node, made, binder)) is not None:
        return exp.alias_(made.boundary(name), f"window_{name}")
    return node.transform(_bounds(found, made, binder))


def _bounds(found: CqlText, made: GroupWindow | SessionWindow, binder: Binder) -> Callable[[exp.Expr], exp.Expr]:
    def written(node: exp.Expr) -> exp.Expr:
        name = _boundary(found, node, made, binder)
        return node if name is None else made.boundary(name)

    return written


def _boundary(found: CqlText, node: exp.Expr, made: GroupWindow | SessionWindow, binder: Binder) -> str | None:
    name = _name(node)
    if isinstance(node, exp.Column):
        called = node.name.lower()
        if node.table.upper() in FIELDS and called in _BOUNDS_WINDOW.values():
            return called
        own = {column.name.lower() for alias, _ in binder.scope.sources for column in binder.scope.columns(alias)}
        return None if node.table or called in own else _BOUNDS_WINDOW.get(called)
    if name in WINDOW_CALLS:
        raise error_at(
            found.text,
            node,
            f"{_shown(node)} must be in GROUP BY, not in the select list or HAVING",
            "select window_start or window_end",
        )
    base, _, end = name.rpartition("_")
    if base not in ("TUMBLE", "HOP", "CUMULATE", "SESSION") or end not in ("START", "END"):
        return None
    if base != _shown(made.node) or node.expressions != made.node.expressions:
        raise error_at(
            found.text,
            node,
            f"{name} must name the window of GROUP BY",
            f"select window_{end.lower()} instead",
        )
    return end.lower()


def _name(node: exp.Expr) -> str:
    return node.name.upper() if isinstance(node, exp.Anonymous) else ""


def _shown(node: exp.Expr) -> str:
    name = _name(node)
    return {"WINDOW": "window(...)", "SESSION_WINDOW": "session_window"}.get(name, name)


@dataclass(frozen=True)
class SessionWindow:
    """Sessions by `gap` microseconds."""

    gap: int
    node: exp.Expr

    def window(self) -> Window:
        """The window of the source: a row that has come is the operator's, who keeps it until its session is over."""
        return Window("range", 0)

    def boundary(self, name: str) -> exp.Expr:
        """The `start` or `end` of a result, of which the time is the session's end."""
        return exp.column(TIME_COLUMN) if name == "end" else exp.column(START, GROUPED)
