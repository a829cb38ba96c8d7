"""The joins of FROM in their order: runs of inner joins, and between them outer, semi and anti joins one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from sqlglot import exp

from midstream.expr.evaluate import can_fail
from midstream.expr.expression import Column, Expression
from midstream.expr.functions import always
from midstream.logical.join_times import JoinTimes, Meeting
from midstream.logical.predicates import classify, conjuncts
from midstream.logical.query import BandPredicate, EquiPredicate, Predicate, Source
from midstream.logical.result_time import time_of
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.existence import ASKED
from midstream.sql.from_clause import NO_WINDOW
from midstream.sql.place import place, place_of
from midstream.sql.scope import Scope
from midstream.sql.sql_tree import anded


@dataclass(frozen=True)
class JoinedSource:
    """A source as FROM names it, the kind of the join that it stands behind, and the conditions of that."""

    source: Source
    kind: str
    table: exp.Expr
    join: exp.Expr | None
    on: tuple[exp.Expr, ...]
    offset: int

    @property
    def is_inner(self) -> bool:
        """Whether it is joined by an inner join, or is the first source."""
        return self.kind == "inner"


@dataclass(frozen=True)
class Block:
    """Sources that are joined at once: by inner joins, or one by an outer, semi or anti join.

    `where` are the conditions of WHERE that can be asked of its results as well as of the query's.
    """

    joined: tuple[JoinedSource, ...]
    where: tuple[exp.Expr, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the join."""
        return self.joined[0].kind

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is joined."""
        return tuple(one.source for one in self.joined)


def blocks_of(joined: Sequence[JoinedSource]) -> tuple[Block, ...]:
    """The blocks of a query's joins, none of which has conditions of WHERE yet."""
    found: list[tuple[JoinedSource, ...]] = [(joined[0],)]
    for one in joined[1:]:
        if one.is_inner and found[-1][0].is_inner:
            found[-1] += (one,)
        else:
            found.append((one,))
    return tuple(Block(one) for one in found)


@dataclass(frozen=True)
class JoinOrder:
    """The blocks of a query, and what is known of times as each has been joined; `scope` says what names mean."""

    found: CqlText
    blocks: tuple[Block, ...]
    scope: Scope
    streams: Mapping[str, StreamSchema]

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources, in FROM order."""
        return tuple(source for block in self.blocks for source in block.sources)

    def visible(self, count: int) -> tuple[str, ...]:
        """The aliases that can be read of what the first blocks join."""
        blocks = [block for block in self.blocks[:count] if block.kind not in ("semi", "anti")]
        return tuple(source.alias for block in blocks for source in block.sources)

    def with_where(self, conditions: Sequence[exp.Expr]) -> JoinOrder:
        """The order with each condition of WHERE at the first block at which it can be asked: where all it reads is
        there, and no join behind it pads that.
        """
        blocks = list(self.blocks)
        binder = Binder(self.found.text, self.within(len(blocks)))
        for node in conditions:
            for part in anded(node, bare=False):
                read, at = binder.condition(part).aliases(), len(blocks) - 1
                while at and read and read <= {*self.visible(at)} and blocks[at].kind not in ("right", "full"):
                    at -= 1
                blocks[at] = replace(blocks[at], where=(*blocks[at].where, part))
        return replace(self, blocks=tuple(blocks))

    def within(self, count: int, also: Sequence[str] = ()) -> Scope:
        """What names mean behind the first blocks, and of further sources."""
        hidden = {source.alias for source in self.sources} - {*self.visible(count), *also}
        sources = tuple(one for one in self.scope.sources if self.home(one[0]) not in hidden)
        joined = {source.alias for block in self.blocks[:count] for source in block.sources}
        read = (self.streams[source.stream] for source in self.sources if source.alias in joined | {*also})
        moment = time_of(stream.columns.field(stream.timestamp).type for stream in read)
        return replace(self.scope, sources=sources, moment=moment)

    def home(self, alias: str) -> str:
        """The source whose rows have the columns of an alias: a static table's are those of the stream it enriches."""
        return self._homes.get(alias, alias)

    @cached_property
    def _homes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for (alias, _), view in self.scope.views.items():
            if isinstance(view, Column):
                found.setdefault(alias, view.alias)
        return found

    def conditions(self, at: int) -> list[Expression]:
        """The conditions that decide what the sources of a block are joined with."""
        block, found = self.blocks[at], list[Expression]()
        for number, one in enumerate(block.joined):
            seen = [source.alias for source in block.sources[: number + 1]]
            binder = Binder(self.found.text, self.within(at, seen))
            found += [binder.condition(node) for node in one.on]
        if block.kind == "inner":
            binder = Binder(self.found.text, self.within(at + 1))
            found += [binder.condition(node) for node in block.where]
        return [part for condition in found for part in conjuncts(condition) if not always(part)]

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """How each block but the first is joined with those before it; raises LanguageError without a window."""
        times, found = self.first, list[Meeting]()
        for at, block in enumerate(self.blocks[1:], 1):
            predicates = self.predicates(at)
            found.append(Meeting.of(times, block.kind, block.sources, self.sources, predicates, self.streams))
            if (alias := found[-1].without_window()) is not None:
                raise self._without_window(alias)
            times = found[-1].times()
        return tuple(found)

    @cached_property
    def first(self) -> JoinTimes:
        """What is known of the times of the first block's results."""
        found = JoinTimes.of_inner(self.blocks[0].sources, self.predicates(0), self.streams)
        windowless = (s.alias for s in self.blocks[0].sources if s.window is None and found.late[s.alias] == inf)
        if (alias := next(windowless, None)) is not None:
            raise self._without_window(alias)
        return found

    @property
    def times(self) -> JoinTimes:
        """What is known of the times of all results."""
        return self.meetings[-1].times() if self.meetings else self.first

    def predicates(self, at: int) -> tuple[Predicate, ...]:
        """The conditions of a block that tie sources."""
        together = self.conditions(at)
        return tuple(p for condition in together for p in classify(condition)[1])

    def check_evaluable(self) -> None:
        """Refuse conditions of outer, semi and anti joins that it may be impossible to evaluate for a pair of rows."""
        for at, block in enumerate(self.blocks):
            if block.kind == "inner":
                continue
            left, own = ({*self.visible(at)}, {block.sources[0].alias})
            kept = {"right": own, "full": left | own}.get(block.kind, left)
            alone = [e for e in self.conditions(at) if len(e.aliases()) < 2 and e.aliases() <= kept]
            of_pairs = [p for p in self.predicates(at) if not isinstance(p, EquiPredicate | BandPredicate)]
            if any(map(can_fail, alone)) or any(can_fail(p.expression) for p in of_pairs):
                join = block.joined[0].join
                assert join is not None
                raise LanguageError(
                    "a condition of an outer, semi or anti join cannot be evaluated for every pair of rows",
                    place=place_of(self.found.text, join),
                    remedy="write TRY_CAST instead of CAST, and use NULLIF(x, 0) to the right of // and %",
                )

    def _without_window(self, alias: str) -> LanguageError:
        offset = next(one.offset for block in self.blocks for one in block.joined if one.source.alias == alias)
        return LanguageError(f"stream {alias!r} has no window", place=place(self.found.text, offset), remedy=NO_WINDOW)


def joined_sources(
    tree: exp.Select,
    sources: Sequence[Source],
    offsets: Sequence[int],
    conditions: Sequence[tuple[int, exp.Expr]],
) -> tuple[JoinedSource, ...]:
    """The sources of FROM, each with its join."""
    joins: list[exp.Expr | None] = [None, *(tree.args.get("joins") or [])]
    found = []
    for at, (source, join) in enumerate(zip(sources, joins, strict=False)):
        table = tree.args["from_"].this if join is None else join.this
        on = tuple(node for place, node in conditions if place == at)
        found.append(JoinedSource(source, kind_of(join), table, join, on, offsets[at]))
    return tuple(found)


def kind_of(join: exp.Expr | None) -> str:
    """'left', 'right', 'full', 'semi' or 'anti', else 'inner'.

    >>> kind_of(exp.Join(side="LEFT")), kind_of(exp.Join(side="LEFT", kind="SEMI")), kind_of(None)
    ('left', 'semi', 'inner')
    """
    if join is None:
        return "inner"
    side, kind = (str(join.args.get(key) or "").lower() for key in ("side", "kind"))
    return kind if kind in ("semi", "anti") else side or "inner"


def is_bare(join: exp.Expr) -> bool:
    """Whether a join is a mere comma between two sources."""
    return not any(join.args.get(key) for key in ("side", "kind", "method", "on"))


def stands_in_where(join: exp.Expr) -> bool:
    """Whether a join stands for a condition of WHERE."""
    return bool(join.meta.get(ASKED))
