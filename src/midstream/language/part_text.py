"""The text of a query that answers what some of the sources of another, joined, have: see
`midstream.language.join_parts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp, parse_one

from midstream.language.bind import Binder
from midstream.language.dialect import Midstream
from midstream.language.expression import TIME_COLUMN, Column
from midstream.language.join_order import JoinedSource, JoinOrder
from midstream.language.place import place_of
from midstream.language.scope import Scope, find_name
from midstream.language.subqueries import as_subquery, common_tables
from midstream.language.written import quoted, sql_of
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema

_WORDS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
_WORDS |= {"semi": "SEMI JOIN", "anti": "ANTI JOIN"}


@dataclass(frozen=True)
class WrittenPart:
    """A part: its name and text, under which alias its answers are read, the sources that it joins, by their alias and
    name the columns that it answers, and all of these in order, as their query is to have them.
    """

    name: str
    sql: str
    alias: str
    aliases: tuple[str, ...]
    columns: Mapping[tuple[str, str], Column]
    answers: tuple[Column, ...]

    def time(self, alias: str) -> Column:
        """The event time of a source's row; NULL where it was padded."""
        return self.columns[alias, TIME_COLUMN]


@dataclass(frozen=True)
class PartWriter:
    """Writes the text of parts of a query. `read` are the names of columns, in small letters, that it may read, None
    for all; `streams` by alias other names of streams than the text has.
    """

    order: JoinOrder
    tree: exp.Select
    read: frozenset[str] | None
    streams: Mapping[str, str]

    def write(self, count: int, timed: str | None = None) -> WrittenPart:
        """The part that joins the first blocks. Its answers have the event times of all rows that it joins, and of a
        source that is `timed` have this for their own.

        Where it runs already, but began when streams were declared with their columns in another order, it is that one.
        """
        columns, streams = self._columns(count), self.order.streams
        found = self._written(columns, count, timed)
        if found.name in streams:
            return found
        titles = {answer.name for answer in found.answers}
        for name, stream in streams.items():
            if is_part_of(name, stream, found.alias) and titles == {*stream.columns.names} & titles:
                order = {title: at for at, title in enumerate(stream.columns.names)}
                ordered = sorted(columns, key=lambda one: order[found.columns[one[:2]].name])
                if (again := self._written(ordered, count, timed)).name == name:
                    return again
        return found

    def _written(self, read: Sequence[tuple[str, str, pa.DataType]], count: int, timed: str | None) -> WrittenPart:
        visible = self.order.visible(count)
        alias = "_".join(visible)
        while find_name(alias, (source.alias for source in self.order.sources)):
            alias += "_"
        items, columns, answers = list[str](), dict[tuple[str, str], Column](), list[Column]()
        for source, name, kind in read:
            title = f"{source}.{name}"
            while any(title.lower() == other.name.lower() for other in answers):
                title += "_"
            items.append(f"{self._shown(source, name)} AS {quoted(title)}")
            columns[source, name] = Column(kind, alias, title)
            answers.append(columns[source, name])
        if timed is not None:
            items.append(f"{quoted(timed)}.{quoted(TIME_COLUMN)} AS {quoted(TIME_COLUMN)}")
            answers.append(Column(self.order.within(count).moment, alias, TIME_COLUMN))
        sql = f"SELECT {', '.join(items)} FROM {self._from(count)}"
        where = [self._text(node, count) for block in self.order.blocks[:count] for node in block.where]
        sql += f" WHERE {' AND '.join(where)}" if where else ""
        digest = hashlib.sha256(sql.encode()).hexdigest()[:8]
        return WrittenPart(f"{alias.lower()}-{digest}", sql, alias, visible, columns, tuple(answers))

    def _columns(self, count: int) -> list[tuple[str, str, pa.DataType]]:
        """The columns that may be read of the first blocks, and the times of all rows."""
        scope = self.order.within(count)
        found = [
            (alias, column.name, column.type)
            for alias, _ in scope.sources
            for column in scope.columns(alias)
            if self.read is None or column.name.lower() in self.read
        ]
        return [*found, *((alias, TIME_COLUMN, scope.moment) for alias in self.order.visible(count))]

    def _shown(self, alias: str, name: str) -> str:
        if self.order.home(alias) != alias:
            view = self.order.scope.views[alias, name]
            assert isinstance(view, Column)
            alias, name = view.alias, view.name
        return f"{quoted(alias)}.{quoted(name)}"

    def _from(self, count: int) -> str:
        text = ""
        for at, block in enumerate(self.order.blocks[:count]):
            for number, one in enumerate(block.joined):
                seen = [source.alias for source in block.sources[: number + 1]]
                on = " AND ".join(self._text(node, at, seen) for node in one.on) or "TRUE"
                text += f" {_WORDS[block.kind]} {self._source(one)} ON {on}" if text else self._source(one)
        return text

    def _source(self, one: JoinedSource) -> str:
        alias, window, node = one.source.alias, one.source.window, one.table
        common = common_tables(self.order.found.text, self.tree).get(node.name.lower())
        if alias in self.streams:
            text = f"{quoted(self.streams[alias])} AS {quoted(alias)}"
        elif isinstance(node, exp.Table) and common is not None:
            text = sql_of(as_subquery(common, node))
        elif isinstance(node, exp.Subquery):
            text = f"({sql_of(node.this)}) AS {quoted(alias)}"
        else:
            text = f"{quoted(one.source.stream)} AS {quoted(alias)}"
        if window is None:
            return text
        return f"{text} [ROWS {window.size}]" if window.kind == "rows" else f"{text} [RANGE {window.size} MICROSECONDS]"

    def _text(self, node: exp.Expr, count: int, also: Sequence[str] = ()) -> str:
        """A condition with the sources of its columns written out."""
        binder = Binder(self.order.found.text, self.order.within(count, also))
        meant = binder.condition(node).text()

        def named(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            column, fields = binder.named(part)
            written: exp.Expr = parse_one(self._shown(column.alias, column.name), read=Midstream)
            for name in fields:
                written = exp.Dot(this=written, expression=exp.to_identifier(name, quoted=True))
            return written

        text = f"({sql_of(node.transform(named))})"
        again = Binder(text, self._over_parts(binder.scope))
        if again.condition(parse_one(text, read=Midstream)).text() != meant:
            raise LanguageError(
                "a condition below another join that cannot be written as one of its own",
                place=place_of(self.order.found.text, node),
                remedy="join in a subquery, and select from that",
            )
        return text

    def _over_parts(self, scope: Scope) -> Scope:
        """The scope in which the columns of static tables are those of the streams that these enrich."""
        views = dict.fromkeys(view for view in self.order.scope.views.values() if isinstance(view, Column))
        sources = []
        for alias, schema in scope.sources:
            more = [view for view in views if view.alias == alias and view.name not in schema.names]
            sources.append((alias, pa.schema([*schema, *((view.name, view.type) for view in more)])))
        return replace(scope, sources=tuple(sources))


def is_part_of(name: str, stream: StreamSchema, alias: str) -> bool:
    """Whether a stream, by its name, is the answers of a part that is read under an alias."""
    return stream.answers_of == (name,) and name.startswith(f"{alias.lower()}-")
