"""The result operator of a query that looks rows up in static tables, as they stand in the step.

A table's rows are sorted by the code of its key once, for as long as the version stands; each row of the stream then
finds its range, as in any join here. A row is looked up in the step in which it comes in: so what it meets does not
depend on plans, lanes or strategies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Column, Expression
from midstream.logical.query import EquiPredicate, Lookup, Lookups
from midstream.model.manifest import StaticTable
from midstream.model.schema import VERSION
from midstream.model.window import EVENT_TIME
from midstream.operators.candidates import all_pairs, equal_ranges
from midstream.operators.project import ProjectOperator
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words
from midstream.state.keys import Codes, Indices, key_codes, stable_sort

Read = Callable[[Column], pa.Array]

NONE = -1
"""The place of a table's row where a row has found none."""


@dataclass(frozen=True)
class LookupOperator(ProjectOperator):
    """Joins each row with static tables, one after the other, then evaluates the select list.

    `versions` are those that stand, by name. Of one row's matches the order is that of the table.
    """

    versions: Mapping[str, StaticTable]

    @property
    def node(self) -> Lookups:
        """The logical node of the query that it computes."""
        assert isinstance(self.query.on_top, Lookups)
        return self.query.on_top

    @override
    @property
    def stored(self) -> dict[str, tuple[str, ...]]:
        looked_up = {alias: self.query.columns_of(alias) for alias in self.node.labels}
        return {**super().stored, **looked_up}

    @override
    def evaluated(self, lane: Lane, results: Combinations) -> Answer:
        times = results.valid_from[EVENT_TIME]
        found = _Found(with_time(lane.reader(self.rows, results), times), np.arange(len(results)))
        for index in self._indexes:
            found = index.look_up(found, lane)
        for condition in self.node.kept_if:
            found = found.take(np.flatnonzero(holds(condition, found.read, len(found))))
        times = times[found.at]
        kept, dead = self.judged(found.read, times)
        if kept is not None:
            found, times = found.take(np.flatnonzero(kept)), times[kept]
        answer = self.answer(self.values(found.read, len(found)), times)
        return answer if dead is None else replace(answer, dead=dead)

    @cached_property
    def _indexes(self) -> tuple[_Index | _Lists, ...]:
        return tuple(
            _Lists(one) if one.items is not None else _Index(one, _Version(self.versions[one.table]))
            for one in self.node.lookups
        )


@dataclass(frozen=True)
class _Version:
    """A version of a table as lanes read it."""

    table: StaticTable

    def rows(self, lane: Lane) -> pa.RecordBatch:
        return lane.chunk(self.table.chunk)

    def column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        if name == VERSION:
            return pa.repeat(pa.scalar(self.table.version, pa.int64()), batch.num_rows)
        return batch.column(name)


@dataclass(frozen=True)
class _Found:
    """Rows with what they have found so far: their places `at`, and how their columns are read; each column once."""

    base: Read
    at: Indices
    tables: Mapping[str, tuple[Read, Indices]] = field(default_factory=dict)
    _columns: dict[tuple[str, str], pa.Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.at)

    def read(self, column: Column) -> pa.Array:
        name = (column.alias, column.name)
        if name not in self._columns:
            if column.alias in self.tables:
                read, places = self.tables[column.alias]
                self._columns[name] = read(column).take(pa.array(places, mask=places == NONE))
            else:
                self._columns[name] = self.base(column).take(pa.array(self.at))
        return self._columns[name]

    def take(self, places: Indices) -> _Found:
        tables = {alias: (read, found[places]) for alias, (read, found) in self.tables.items()}
        return _Found(self.base, self.at[places], tables)

    def beside(self, alias: str, read: Read, places: Indices) -> _Found:
        return _Found(self.base, self.at, {**self.tables, alias: (read, places)}, dict(self._columns))


@dataclass(frozen=True)
class _Offers(ABC):
    """What a lookup finds rows in."""

    lookup: Lookup

    @abstractmethod
    def offered(self, found: _Found, lane: Lane) -> tuple[Read, Iterator[tuple[Words, Words]]]:
        """How the columns of what is offered are read, and pairs of rows and places, among which are all that match."""

    def chosen(self, lane: Lane, read: Read, rows: Words, places: Words) -> tuple[Words, Words]:
        return rows, places

    def look_up(self, found: _Found, lane: Lane) -> _Found:
        read, candidates = self.offered(found, lane)
        pairs = [self._matching(found, read, *pair) for pair in candidates]
        rows = np.concatenate([a for a, _ in pairs]) if pairs else np.zeros(0, np.int64)
        places = np.concatenate([b for _, b in pairs]) if pairs else np.zeros(0, np.int64)
        rows, places = self.chosen(lane, read, rows, places)
        if self.lookup.kind in ("semi", "anti"):
            matched = np.zeros(len(found), np.bool_)
            matched[rows] = True
            return found.take(np.flatnonzero(matched if self.lookup.kind == "semi" else ~matched))
        if self.lookup.kind == "left":
            lonely = np.ones(len(found), np.bool_)
            lonely[rows] = False
            rows = np.concatenate([rows, np.flatnonzero(lonely)])
            places = np.concatenate([places, np.full(len(rows) - len(places), NONE, np.int64)])
        order = np.lexsort((places, rows))
        return found.take(rows[order]).beside(self.lookup.alias, read, places[order])

    def _matching(self, found: _Found, read: Read, rows: Words, places: Words) -> tuple[Words, Words]:
        for condition in self.lookup.conditions:
            if len(rows):
                beside = found.take(rows).beside(self.lookup.alias, read, places)
                held = np.flatnonzero(holds(condition.expression, beside.read, len(rows)))
                rows, places = rows[held], places[held]
        return rows, places


@dataclass(frozen=True)
class _Lists(_Offers):
    """The items of a list that each row has: NULL and empty lists have none."""

    @override
    def offered(self, found: _Found, lane: Lane) -> tuple[Read, Iterator[tuple[Words, Words]]]:
        assert self.lookup.items is not None
        lists = evaluate(self.lookup.items, found.read, len(found))
        sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
        items, rows = pc.list_flatten(lists), np.repeat(np.arange(len(found)), sizes)
        places = np.arange(len(rows))
        numbers = pa.array(places - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1)

        def read(column: Column) -> pa.Array:
            return items if column.name == self.lookup.titles[0] else numbers

        return read, iter([(rows, places)])


@dataclass(frozen=True)
class _Index(_Offers):
    """A version of a table, made ready for a lookup: sorted by the code of its key, where equalities make one."""

    table: _Version

    @cached_property
    def keys(self) -> tuple[tuple[Expression, Expression], ...]:
        """For each equality the side before the table, and the table's own."""
        own = self.lookup.alias
        sides = [(p.left, p.right) for p in self.lookup.conditions if isinstance(p, EquiPredicate)]
        turned = [(b, a) if a.aliases() == {own} else (a, b) for a, b in sides]
        return tuple((before, table) for before, table in turned if table.aliases() == {own})

    @override
    def offered(self, found: _Found, lane: Lane) -> tuple[Read, Iterator[tuple[Words, Words]]]:
        batch = self.table.rows(lane)

        def read(column: Column) -> pa.Array:
            return self.table.column(batch, column.name)

        return read, self._candidates(found, batch, read)

    def _candidates(self, found: _Found, batch: pa.RecordBatch, read: Read) -> Iterator[tuple[Words, Words]]:
        if not self.keys:
            yield from all_pairs(len(found), batch.num_rows)
            return
        codes, places = self._sorted(batch, read)
        if not len(codes) or not len(found):
            return
        needles, valid = key_codes([evaluate(key, found.read, len(found)) for key, _ in self.keys])
        asked = np.arange(len(found)) if valid is None else np.flatnonzero(valid)
        for a, b in equal_ranges(needles[asked], codes).blocks():
            yield asked[a], places[b]

    def _sorted(self, batch: pa.RecordBatch, read: Read) -> tuple[Codes, Indices]:
        """Return the codes of the table's keys in order, and where their rows are; made once."""
        if not self._made:
            codes, valid = key_codes([evaluate(key, read, batch.num_rows) for _, key in self.keys])
            order, ordered = stable_sort(codes if valid is None else codes[valid])
            self._made.append((ordered, order if valid is None else np.flatnonzero(valid)[order]))
        return self._made[0]

    @cached_property
    def _made(self) -> list[tuple[Codes, Indices]]:
        return []

    @override
    def chosen(self, lane: Lane, read: Read, rows: Words, places: Words) -> tuple[Words, Words]:
        if self.lookup.latest is None:
            return rows, places
        # Of each row's pairs the one with the latest row of the table.
        if not self._ranked:
            times = evaluate(self.lookup.latest, read, self.table.rows(lane).num_rows)
            self._ranked.append(pc.rank(times, "descending", tiebreaker="dense").to_numpy().astype(np.int64))
        order = np.lexsort((places, self._ranked[0][places], rows))
        rows, places = rows[order], places[order]
        first = np.ones(len(rows), np.bool_)
        first[1:] = rows[1:] != rows[:-1]
        return rows[first], places[first]

    @cached_property
    def _ranked(self) -> list[Indices]:
        return []


class LookupCompiler(ResultCompiler):
    """Compiles a query that looks rows up in static tables."""

    name = "lookup"
    node = Lookups

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        assert isinstance(asked.query.on_top, Lookups)
        versions = {table: asked.tables[table] for table in asked.query.on_top.tables}
        return LookupOperator(asked.query, asked.binding.rows(), (), versions)
