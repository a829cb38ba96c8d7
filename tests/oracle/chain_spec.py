"""Joins of several streams, outer, semi and anti ones among them, and aggregates over them, as tests say them.

The oracle joins one source after the other: whoever meets is decided by the times of the rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from tests.oracle.arrival import Arrivals
from tests.oracle.spec import TIME, QuerySpec, SourceSpec, duration

KINDS = {
    "JOIN": "INNER", "CROSS JOIN": "INNER", "LEFT JOIN": "LEFT", "LEFT OUTER JOIN": "LEFT", "RIGHT JOIN": "RIGHT",
    "FULL JOIN": "FULL", "SEMI JOIN": "SEMI", "EXISTS": "SEMI", "IN": "SEMI", "ANTI JOIN": "ANTI",
    "NOT EXISTS": "ANTI", "NOT IN": "ANTI",
}  # fmt: skip
IN_WHERE = ("EXISTS", "IN", "NOT EXISTS", "NOT IN")

NEVER = 2**40
"""A step that does not come."""


@dataclass(frozen=True)
class ChainJoin:
    """How a source is joined: `inner` is what IN compares, an expression over the sources before and one of its own."""

    written: str
    on: tuple[str, ...] = ()
    inner: tuple[str, str] = ("", "")

    @property
    def kind(self) -> str:
        """INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""
        return KINDS[self.written]


@dataclass(frozen=True)
class ChainSpec(QuerySpec):
    """`sources` joined by `joins`, one for each but the first; `after` stands in WHERE.

    Windows are the sources' own, or `form` says otherwise: "query" has all of one size at the end, "interval" ties each
    source to the first by a condition between their timestamps. An aggregate is by `group_by` and, in `tumble`
    microseconds, of the time `of`, or EVERY, over a window of the query's.
    """

    joins: tuple[ChainJoin, ...] = ()
    after: tuple[str, ...] = ()
    form: str = "own"
    tumble: int = 0
    of: str = TIME

    def cql(self) -> str:
        """The text that midstream gets."""
        first, own = self.sources[0], self.form == "own"
        text, where = f"FROM {first.cql(window=own)}", [f"({condition})" for condition in self.after]
        for source, join in zip(self.sources[1:], self.joins, strict=True):
            on = [f"({condition})" for condition in join.on]
            if self.form == "interval":
                low, high = duration(_size(source)), duration(_size(first))
                between = f"{first.alias}.ts - INTERVAL {low} AND {first.alias}.ts + INTERVAL {high}"
                on.append(f"{source.alias}.ts BETWEEN {between}")
            shown, tied = source.cql(window=own), " AND ".join(on)
            if join.written in IN_WHERE:
                inside = f"FROM {shown}{f' WHERE {tied}' if tied else ''}"
                outer, inner = join.inner
                where.append(f"{outer} {join.written} (SELECT {inner or '1'} {inside})".strip())
            else:
                text += f" {join.written} {shown} ON {tied or 'TRUE'}"
        text = f"SELECT {', '.join(item.cql() for item in self.select)} {text}"
        text += f" WHERE {' AND '.join(where)}" if where else ""
        groups = [*self.group_by, *([f"TUMBLE({self.of}, INTERVAL {duration(self.tumble)})"] if self.tumble else [])]
        text += f" GROUP BY {', '.join(groups)}" if groups else ""
        text += f" WINDOW {duration(self.window)}" if self.window is not None else ""
        return text + (f" EVERY {duration(self.every)}" if self.every is not None else "")

    def answer(
        self,
        fetch: Callable[[str], pa.Table],
        register: Callable[[str, pa.Table], object],
        arrivals: Arrivals,
        steps: range,
    ) -> pa.Table:
        """The columns of the answer, `t` and `step`; `source_0, ...` are the rows of the sources."""
        seen = f"WHERE __step >= {steps.start} AND __step < {steps.stop}"
        first = self.sources[0].alias
        known = fetch(f"SELECT {first}, {first}.__ts AS t, {first}.__step AS step FROM source_0 AS {first} {seen}")
        waits, visible = [wait for _, wait, _ in self._times()], [first]
        for at, (source, join) in enumerate(zip(self.sources[1:], self.joins, strict=True), 1):
            register("joined", known)
            known = self._told(fetch(self._joined(at, source, join, visible, waits[at], seen)), arrivals, at + 1, steps)
            visible += [] if join.kind in ("SEMI", "ANTI") else [source.alias]
        register("joined", known)
        after = [f"step < {NEVER}", *(f"({condition})" for condition in self.after)]
        register("whole", fetch(f"SELECT * FROM joined WHERE {' AND '.join(after)}"))
        if not self.tumble and self.every is None:
            return fetch(f"SELECT {self._shown('t')}, t, step FROM whole ORDER BY t")
        found = self._tumbled(fetch) if self.tumble else self._every(fetch)
        behind = 0 if self.of == TIME else self._late(self.of.split(".")[0])
        passed = self._passed(arrivals, len(self.sources), steps)
        told = [passed(t + behind) for t in found["t"].to_pylist()]
        found = found.append_column("step", pa.array(told, pa.int64()))
        return found.filter(pa.array([step < NEVER for step in told], pa.bool_()))

    def _told(self, found: pa.Table, arrivals: Arrivals, count: int, steps: range) -> pa.Table:
        """What the first sources answer, with the step of what waits, that in which the watermark passes it."""
        passed = self._passed(arrivals, count, steps)
        pairs = zip(found["t"].to_pylist(), found["step"].to_pylist(), strict=True)
        told = pa.array([passed(time) if step is None else step for time, step in pairs], pa.int64())
        return found.set_column(found.column_names.index("step"), "step", told)

    def _shown(self, time: str) -> str:
        return ", ".join(
            f"{time if item.text == TIME else item.text} AS c{place}" for place, item in enumerate(self.select)
        )

    def _tumbled(self, fetch: Callable[[str], pa.Table]) -> pa.Table:
        time = "t" if self.of == TIME else f"{self.of.split('.')[0]}.__ts"
        instant = f"({time} // {self.tumble} + 1) * {self.tumble} - 1"
        groups = "".join(f", {group}" for group in self.group_by)
        sql = f"SELECT {self._shown(instant)}, {instant} AS told FROM whole GROUP BY {instant}{groups} ORDER BY told"
        found = fetch(sql)
        return found.rename_columns([*found.column_names[:-1], "t"])

    def _every(self, fetch: Callable[[str], pa.Table]) -> pa.Table:
        """At each instant over the results that are no older than the window."""
        instants = f"SELECT range * {self.every} AS i FROM range((SELECT min(t) FROM whole) // {self.every}, "
        instants += f"((SELECT max(t) FROM whole) + {self.window}) // {self.every} + 1)"
        groups = "".join(f", {group}" for group in self.group_by)
        within = f"i BETWEEN whole.t AND whole.t + {self.window}"
        return fetch(
            f"SELECT {self._shown('i')}, i AS t FROM whole, ({instants}) WHERE {within} GROUP BY i{groups} ORDER BY i"
        )

    def _joined(
        self, at: int, source: SourceSpec, join: ChainJoin, visible: Sequence[str], wait: int, seen: str
    ) -> str:
        """The query for the rows that a join answers, with `t`, and `step` where they do not wait."""
        own, first = source.alias, self.sources[0]
        sizes = {one.alias: _size(one) for one in self.sources}
        on = [f"({condition})" for condition in join.on]
        if self.form == "interval":
            on.append(
                f"{own}.__ts BETWEEN {first.alias}.__ts - {sizes[own]} AND {first.alias}.__ts + {sizes[first.alias]}"
            )
        else:
            newest = f"greatest({', '.join(f'{alias}.__ts' for alias in (*visible, own))})"
            on += [f"({alias}.__ts IS NULL OR {newest} - {alias}.__ts <= {sizes[alias]})" for alias in (*visible, own)]
        outer, inner = join.inner
        same = f"{outer} = {inner}" if inner else "TRUE"
        ends = f"least({', '.join(f'{alias}.__ts + {sizes[alias]}' for alias in visible)})"
        if self.form == "interval":
            ends = f"{first.alias}.__ts + {sizes[first.alias]}"
        right = f"(SELECT {own} FROM source_{at} AS {own} {seen}) AS r"
        kept, together = ", ".join(visible), ", ".join((*visible, own))
        tied = " AND ".join(on)
        if join.kind == "ANTI":
            inside = f"(SELECT {inner or '1'} FROM {right} WHERE {tied})"
            found = f"{outer} NOT IN {inside}" if inner else f"NOT EXISTS {inside}"
            return f"SELECT {kept}, greatest(t, {ends}) AS t, NULL::BIGINT AS step FROM joined WHERE {found}"
        if join.kind == "SEMI":
            numbered = "(SELECT *, row_number() OVER () AS n FROM joined)"
            shown = ", ".join(f"any_value({alias}) AS {alias}" for alias in visible)
            least = f"min(greatest(t, {own}.__ts)) AS t, NULL::BIGINT AS step"
            return f"SELECT {shown}, {least} FROM {numbered}, {right} WHERE {same} AND {tied} GROUP BY n"
        alone = f"WHEN l.t IS NULL THEN {own}.__ts + {wait} WHEN {own} IS NULL THEN greatest(l.t, {ends})"
        t = f"CASE {alone} ELSE greatest(l.t, {own}.__ts) END"
        step = f"CASE WHEN l.t IS NOT NULL AND {own} IS NOT NULL THEN greatest(l.step, {own}.__step) END"
        return f"SELECT {together}, {t} AS t, {step} AS step FROM joined AS l {join.kind} JOIN {right} ON {tied}"

    def _late(self, alias: str) -> int:
        """How much later than a row of a source, which is never padded, its results may come."""
        *_, (_, _, late) = self._times()
        return late[alias]

    def _times(self) -> Iterator[tuple[str, int, dict[str, int]]]:
        """For each source how long a row of it waits to be told that its join pads it, and by source how much later
        than a row the results of all so far may come. Inner joins that follow one another are one.
        """
        sizes = {source.alias: _size(source) for source in self.sources}
        kinds = ["INNER", *(join.kind for join in self.joins)]
        late, always = dict[str, int](), set[str]()
        pairs = zip(kinds, sizes, strict=True)
        for (kind, _), block in groupby(pairs, lambda one: (one[0], "" if one[0] == "INNER" else one[1])):
            new = [alias for _, alias in block]
            least = min((late[alias] for alias in always), default=max(late.values(), default=0))
            waits = {alias: sizes[alias] + least for alias in new}
            late = {alias: max(wait, sizes[alias]) for alias, wait in late.items()}
            if kind not in ("SEMI", "ANTI"):
                late |= waits if len(late) + len(new) > 1 else dict.fromkeys(new, 0)
                always = {"INNER": always | {*new}, "LEFT": always, "RIGHT": {*new}}.get(kind, set())
            yield from ((alias, waits[alias], late) for alias in new)

    def _passed(self, arrivals: Arrivals, count: int, steps: range) -> Callable[[int], int]:
        """The step in which the watermark of the first sources passes a time."""
        streams = frozenset(source.stream for source in self.sources[:count])
        ends = [(step, end) for step in steps if (end := arrivals.query_watermark(streams, step)) is not None]
        return lambda time: next((step for step, end in ends if time < end), NEVER)


def _size(source: SourceSpec) -> int:
    assert source.range is not None
    return source.range
