"""Calls OVER the rows near to each row: aggregates in a frame of time or of rows, LAG and LEAD.

`SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW)` gives each row of a
stream an answer of its own. A frame in time says itself how long rows are kept. The window of the stream says it for
LAG, LEAD, frames of rows, and frames without an end: these see the rows that are no further away than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from midstream.expr.coerce import literal, plain
from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression
from midstream.expr.functions import call as called
from midstream.expr.nested import part_of
from midstream.logical.query import GROUPED, Aggregate, AggregateCall, Frame, Output, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.aggregate_calls import KNOWN, aggregate_call, as_known, result_type
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.group_window import duration
from midstream.sql.moments import columns_of_time
from midstream.sql.place import error_at, place, word_at
from midstream.sql.scope import Scope
from midstream.sql.select_list import outputs_of, written_out
from midstream.sql.top_n_clause import order_key, partition_group

_ALL = 2**62
"""More rows than any frame has."""

_IN_TIME = "RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW"
_BOUNDED = "say how far rows may be apart: FROM A [RANGE 1 HOUR], or WINDOW 1 HOUR at the end of the query"
_UNLIMITED = f"write {_IN_TIME}; or {_BOUNDED}"


def over_rows(
    found: CqlText, tree: exp.Select, scope: Scope, sources: tuple[Source, ...], streams: Mapping[str, StreamSchema]
) -> tuple[tuple[Output, ...], Aggregate, Source]:
    """The outputs and the calls of a query with calls OVER (...), and its source with the window that they need.

    Raises LanguageError.
    """
    if found.every is not None:
        remedy = "leave EVERY out: each row has an answer when the watermark passes the end of its frame"
        raise LanguageError(
            "EVERY cannot be in a query with OVER", place=place(found.text, found.every[1]), remedy=remedy
        )
    for key, word in (("group", "GROUP BY"), ("having", "HAVING")):
        if (clause := tree.args.get(key)) is not None:
            remedy = "group in a subquery, and compute OVER its answers"
            raise error_at(found.text, clause, f"{word} cannot be in a query with OVER", remedy)
    (source,) = sources
    if source.window is not None and source.window.kind == "rows":
        raise error_at(
            found.text, tree, "OVER needs a stream with a window of time, not of rows", "write [RANGE n unit]"
        )
    return _Over(found, tree, scope, source, streams[source.stream]).run()


class _Over:
    def __init__(self, found: CqlText, tree: exp.Select, scope: Scope, source: Source, stream: StreamSchema) -> None:
        self.text, self.found, self.tree = found.text, found, tree
        self.scope, self.source, self.stream = scope, source, stream
        self.inner = Binder(found.text, replace(scope, time=None))
        self.outer = Binder(found.text, scope, self.called)
        self.first: exp.Window | None = None
        self.groups: tuple[Expression, ...] = ()
        self.keys: tuple[tuple[Expression, bool], ...] = ()
        self.calls: list[AggregateCall] = []

    def run(self) -> tuple[tuple[Output, ...], Aggregate, Source]:
        outputs = outputs_of(self.outer, self.tree)
        clause = self.tree.args.get("qualify")
        asked = None if clause is None else clause.this.transform(written_out, self.tree, self.scope)
        having = None if asked is None else self.outer.condition(asked)
        frames = [call.frame for call in self.calls if call.frame is not None]
        kept = max(0, *(one.before for one in frames)) + max(0, *(one.after for one in frames))
        aggregate = Aggregate(self.groups, tuple(self.calls), 1, having, over=self.keys)
        return outputs, aggregate, replace(self.source, window=Window("range", kept))

    def called(self, node: exp.Expr) -> Expression | None:
        """The column of a call OVER (...), perhaps with its default; None for other nodes."""
        if not isinstance(node, exp.Window):
            return None
        self.partition(node)
        inside = node.this
        if isinstance(inside, exp.RespectNulls):
            inside = inside.this
        if isinstance(inside.this if isinstance(inside, exp.IgnoreNulls) else inside, exp.Lag | exp.Lead):
            return self.neighbour(node, inside)
        call = aggregate_call(inside.transform(as_known), self.inner)
        if call is None:
            called = (word_at(self.text, node) or inside.key).upper()
            remedy = (
                f"use {KNOWN}, LAG or LEAD; ROW_NUMBER, RANK and DENSE_RANK as QUALIFY ROW_NUMBER() OVER (...) <= n"
            )
            raise error_at(self.text, node, f"{called} cannot be used with OVER", remedy)
        return self.column(replace(call, frame=self.frame(node)))

    def column(self, call: AggregateCall) -> Column:
        if call not in self.calls:
            self.calls.append(call)
        return Column(result_type(call), GROUPED, f"a{self.calls.index(call)}")

    def partition(self, node: exp.Window) -> None:
        """Read PARTITION BY and ORDER BY, which all calls have in common."""
        by, order = node.args.get("partition_by") or [], node.args.get("order")
        if node.args.get("alias") is not None:
            raise error_at(
                self.text, node, "OVER cannot name a window", "write the window in brackets: OVER (PARTITION BY ...)"
            )
        if order is None:
            remedy = f"write OVER (PARTITION BY k ORDER BY {self.stream.timestamp} {_IN_TIME})"
            raise error_at(
                self.text, node, "OVER cannot take all rows of a stream, because a stream never ends", remedy
            )
        if self.first is not None:
            if [*by, order] == [*(self.first.args.get("partition_by") or []), self.first.args["order"]]:
                return
            remedy = "ask for the others in a query of their own, or around this one"
            raise error_at(self.text, node, "all calls of a SELECT must have one PARTITION BY and ORDER BY", remedy)
        self.first = node
        time, *keys = order.expressions
        if self.time(time.this) not in columns_of_time(self.stream) | {TIME_COLUMN} or time.args.get("desc"):
            wrong = (
                "cannot be in descending order of time"
                if time.args.get("desc")
                else "must be in order of an event time"
            )
            remedy = f"ORDER BY {self.stream.timestamp}; for what comes after a row write FOLLOWING, or LEAD"
            raise error_at(self.text, time, f"OVER {wrong}", remedy)
        self.groups = tuple(partition_group(self.found, self.inner, one) for one in by)
        self.keys = tuple(order_key(self.found, self.inner, one) for one in keys)

    def time(self, node: exp.Expr) -> str:
        """The name of the column that a key is; empty for what is none."""
        bound = self.outer.bind(node)
        if isinstance(bound, Call) and bound.function == "moment":
            (bound,) = bound.arguments
        return bound.name if isinstance(bound, Column) else ""

    def neighbour(self, node: exp.Window, inside: exp.Expr) -> Expression:
        """LAG and LEAD: the first of a frame of one row, or the default where there is none.

        With IGNORE NULLS the frame has all rows before or behind, without those whose value is NULL.
        """
        call = inside.this if isinstance(inside, exp.IgnoreNulls) else inside
        name = call.key.upper()
        if node.args.get("spec") is not None:
            raise error_at(self.text, node, f"{name} cannot have a frame", f"leave it out; {_BOUNDED}")
        offset = call.args.get("offset")
        by = offset.name if isinstance(offset, exp.Literal) and not offset.is_string else "1" if offset is None else ""
        if not by.isdigit() or int(by) > _ALL:
            said = f"the second argument of {name} must be a whole number of rows"
            raise error_at(self.text, node, said, f"write {name}(v, 2)")
        bound, ahead, count = self.bound(node, name), name == "LEAD", int(by)
        argument, near = plain(self.inner.bind(call.this)), (0, bound) if ahead else (bound, 0)
        if isinstance(inside, exp.IgnoreNulls) and count:
            frame_ = Frame(*near, (1, _ALL) if ahead else (-_ALL, -1))
            value, rows = self.known(argument, count, frame_, ahead=ahead), argument
        else:
            at = count if ahead else -count
            frame_, count, rows = Frame(*near, (at, at)), 1, None
            value = self.column(AggregateCall("first", argument, frame=frame_))
        default = call.args.get("default")
        if default is None:
            return value
        found = self.column(AggregateCall("count", rows, frame=frame_))
        there = self.outer.call("ge", found, literal(count))
        return self.outer.call("case", there, value, self.outer.bind(default))

    def known(self, argument: Expression, count: int, frame: Frame, *, ahead: bool) -> Expression:
        """The value of the row that is the `count`th from the row asked, of those whose value is not NULL."""
        is_known = called("not", called("is_null", argument))
        if count == 1:
            return self.column(AggregateCall("first" if ahead else "last", argument, condition=is_known, frame=frame))
        values = self.column(AggregateCall("array_agg", argument, condition=is_known, frame=frame))
        return part_of(values, literal(count if ahead else -count))

    def bound(self, node: exp.Expr, what: str, remedy: str = _BOUNDED) -> int:
        """How far rows may be apart that have no frame in time: the window of the stream."""
        if self.source.window is None:
            raise error_at(
                self.text,
                node,
                f"{what} needs a window, because the query would otherwise keep all rows forever",
                remedy,
            )
        return self.source.window.size

    def frame(self, node: exp.Window) -> Frame:
        spec = node.args.get("spec")
        if spec is None:
            return Frame(self.bound(node, "a frame from the first row on", _UNLIMITED), 0)
        kind = spec.text("kind").upper() or "RANGE"
        if kind not in ("RANGE", "ROWS") or spec.args.get("exclude"):
            wrong = f"a frame of {kind}" if kind not in ("RANGE", "ROWS") else "a frame with EXCLUDE"
            raise error_at(self.text, node, f"OVER cannot have {wrong}", f"write {_IN_TIME}")
        first = self.edge(node, kind, spec.args.get("start"), spec.args.get("start_side"), "PRECEDING")
        last = self.edge(node, kind, spec.args.get("end"), spec.args.get("end_side"), "FOLLOWING")
        if first > last:
            raise error_at(self.text, node, "a frame cannot end before it begins", f"write {_IN_TIME}")
        if kind == "ROWS":
            bound = self.bound(node, "a frame of rows")
            return Frame(bound if first < 0 else 0, bound if last > 0 else 0, (first, last))
        if self.keys and abs(first) + abs(last) > 0:
            raise error_at(
                self.text,
                node,
                "OVER with a RANGE frame can be ordered only by the timestamp column",
                "order by the timestamp column only",
            )
        return Frame(-first, last)

    def edge(self, node: exp.Window, kind: str, value: object, side: str | None, unsaid: str) -> int:
        """How far an end of a frame is behind the row, in microseconds or rows; negative where it is before it."""
        if value is None or value == "CURRENT ROW":
            return 0
        sign = -1 if (side or unsaid) == "PRECEDING" else 1
        if value == "UNBOUNDED":
            what = f"a frame UNBOUNDED {side}"
            return sign * (_ALL if kind == "ROWS" else self.bound(node, what, _UNLIMITED))
        assert isinstance(value, exp.Expr)
        if kind == "RANGE":
            if not isinstance(value, exp.Interval):
                raise error_at(self.text, node, "a RANGE frame needs a unit of time", f"write {_IN_TIME}")
            return sign * duration(self.text, value, least=0)
        if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
            raise error_at(self.text, node, "a frame of ROWS needs a number of rows", "write ROWS 3 PRECEDING")
        return sign * min(int(value.name), _ALL)
