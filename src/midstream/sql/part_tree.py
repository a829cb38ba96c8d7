"""The tree of a query that answers what some of the sources of another, joined, have: see
`midstream.sql.join_parts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN, Column
from midstream.model.schema import StreamSchema
from midstream.sql.bind import Binder
from midstream.sql.dialect import WindowClause
from midstream.sql.join_order import JoinedSource, JoinOrder
from midstream.sql.parts import Statement
from midstream.sql.place import standing_at
from midstream.sql.scope import find_name
from midstream.sql.sql_tree import column_of, join_of, source_of, titled
from midstream.sql.subqueries import as_subquery, common_tables


@dataclass(frozen=True)
class WrittenPart:
    """A part: its name and tree, under which alias its answers are read, the sources that it joins, by their alias and
    name the columns that it answers, and all of these in order, as their query is to have them.
    """

    name: str
    statement: Statement
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
        items, columns, answers = list[exp.Expr](), dict[tuple[str, str], Column](), list[Column]()
        for source, name, kind in read:
            title = f"{source}.{name}"
            while any(title.lower() == other.name.lower() for other in answers):
                title += "_"
            items.append(titled(*self._shown(source, name), title))
            columns[source, name] = Column(kind, alias, title)
            answers.append(columns[source, name])
        if timed is not None:
            items.append(titled(timed, TIME_COLUMN, TIME_COLUMN))
            answers.append(Column(self.order.within(count).moment, alias, TIME_COLUMN))
        tree = self._from(count)
        tree.set("expressions", items)
        where = [self._condition(node, count) for block in self.order.blocks[:count] for node in block.where]
        tree.set("where", exp.Where(this=exp.and_(*where)) if where else None)
        part = Statement(self.order.found.text, tree, is_part=True)
        return WrittenPart(part.name(alias), part, alias, visible, columns, tuple(answers))

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

    def _shown(self, alias: str, name: str) -> tuple[str, str]:
        if self.order.home(alias) == alias:
            return alias, name
        view = self.order.scope.views[alias, name]
        assert isinstance(view, Column)
        return view.alias, view.name

    def _from(self, count: int) -> exp.Select:
        tree = exp.Select()
        for at, block in enumerate(self.order.blocks[:count]):
            for number, one in enumerate(block.joined):
                if tree.args.get("from_") is None:
                    tree.set("from_", exp.From(this=self._source(one)))
                    continue
                seen = [source.alias for source in block.sources[: number + 1]]
                on = [self._condition(node, at, seen) for node in one.on]
                tree.append("joins", join_of(block.kind, self._source(one), on))
        return tree

    def _source(self, one: JoinedSource) -> exp.Expr:
        alias, window, node = one.source.alias, one.source.window, one.table
        common = common_tables(self.order.found.text, self.tree).get(node.name.lower())
        stream = self.streams.get(alias, one.source.stream)
        if alias not in self.streams and isinstance(node, exp.Table) and common is not None:
            source: exp.Expr = as_subquery(common, node)
        elif alias not in self.streams and isinstance(node, exp.Subquery):
            source = source_of(node, alias)
        else:
            source = source_of(standing_at(exp.Table(this=exp.to_identifier(stream, quoted=True)), node), alias)
        if window is not None:
            source.set("window", WindowClause(one.offset, window))
        return source

    def _condition(self, node: exp.Expr, count: int, also: Sequence[str] = ()) -> exp.Expr:
        """A condition with the sources of its columns written out."""
        binder = Binder(self.order.found.text, self.order.within(count, also))

        def named(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            column, fields = binder.named(part)
            return standing_at(column_of(*self._shown(column.alias, column.name), fields), part)

        return exp.Paren(this=node.copy().transform(named))


def is_part_of(name: str, stream: StreamSchema, alias: str) -> bool:
    """Whether a stream, by its name, is the answers of a part that is read under an alias."""
    return stream.answers_of == (name,) and name.startswith(f"{alias.lower()}-")
