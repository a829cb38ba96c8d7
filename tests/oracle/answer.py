"""The whole answer of a query, by one SQL query over all rows of the run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from tests.oracle.arrival import Arrivals, Lifetime, Step, arrive
from tests.oracle.chain_spec import ChainSpec
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.ranked_spec import RankedSpec
from tests.oracle.spec import TIME, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend, output_names

FOREVER = 2**62
"""The end of a lifetime that nothing limits."""


@dataclass(frozen=True)
class Answer:
    """All rows a query must put out, in order of time.

    `times` is each row's time in microseconds and `steps` the step that must put it out; `approximate` names the
    columns whose values depend on the order of floating-point additions.
    """

    table: pa.Table
    times: list[int]
    steps: list[int]
    approximate: frozenset[str]


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """The one DuckDB connection of this process: one thread, UTC, and x/0 is NULL."""
    found = duckdb.connect()
    found.execute(
        "SET threads = 1; SET TimeZone = 'UTC';"
        "SET ieee_floating_point_ops = true; SET error_on_division_by_zero = false"
    )
    return found


def answers(streams: Sequence[StreamSpec], steps: Sequence[Step], queries: Sequence[Lifetime]) -> dict[str, Answer]:
    """What every query must answer over the whole run."""
    arrivals = arrive(streams, steps, queries)
    return {query.name: answer(tuple(streams), arrivals, query) for query in queries}


def answer(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime) -> Answer:
    """What one query must answer."""
    last = len(arrivals.watermarks) if query.until is None else query.until
    for number, source in enumerate(query.spec.all_sources):
        connection().register(f"source_{number}", arrivals.admitted[source.stream])
    if isinstance(query.spec, ChainSpec):
        items = query.spec.items(streams)
        found = query.spec.answer(_fetch, connection().register, arrivals, range(query.since, last))
        return _answer(streams, query.spec, items, found)
    if isinstance(query.spec, OuterSpec):
        return _outer(streams, arrivals, query, last)
    if query.spec.subtracted:
        return _difference(streams, arrivals, query, last)
    if isinstance(query.spec, RankedSpec):
        return _ranked(streams, arrivals, query, last)
    if query.spec.relation in ("DSTREAM", "RSTREAM"):
        return _of_relation(streams, arrivals, query, last)
    if query.spec.every is not None:
        return _aggregate(streams, arrivals, query, last)
    return _join(streams, query, last)


def _fetch(sql: str) -> pa.Table:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
        return connection().execute(sql).to_arrow_table()  # A copy more, yet quicker than to bind the text twice.


def _relation(query: Lifetime, number: int, source: SourceSpec, last: int) -> str:
    """The rows of one source that the query sees, each with the end of its lifetime `__until` in CQL's sense."""
    until = str(FOREVER)
    if source.rows is not None:
        until = f"coalesce(lead(__ts, {source.rows}) OVER (ORDER BY __ts, __arrival) - 1, {FOREVER})"
    elif width(query, source) is not None:
        until = f"__ts + {width(query, source)}"
    seen = f"SELECT * FROM source_{number} WHERE __step >= {query.since} AND __step < {last}"
    return f'(SELECT *, {until} AS __until FROM ({seen})) AS "{source.alias}"'


def width(query: Lifetime, source: SourceSpec) -> int | None:
    """The time window of a source, its own or the query's."""
    if source.rows is not None:
        return None
    return query.spec.window if source.range is None else source.range


def _over(function: str, sources: Sequence[SourceSpec], column: str) -> str:
    return f"{function}({', '.join(f'{s.alias}.{column}' for s in sources)})"


def _select(items: tuple[Item, ...], time: str) -> list[str]:
    return [f"{time if item.text == TIME else item.sql or item.text} AS c{place}" for place, item in enumerate(items)]


def _join(streams: tuple[StreamSpec, ...], query: Lifetime, last: int) -> Answer:
    """A join: T is the greatest time; a row counts if it was in its window when the last component came."""
    spec = query.spec
    time = _over("greatest", spec.sources, "__ts")
    conditions = [c.sql or c.text for c in spec.where]
    for source in spec.sources:
        if source.rows is not None:
            arrived = _over("greatest", spec.sources, f'"__count_{source.stream}"')
            conditions.append(f"{arrived} <= {source.alias}.__number + {source.rows - 1}")
        elif width(query, source) is not None:
            conditions.append(f"{time} - {source.alias}.__ts <= {width(query, source)}")
            # Implied by the line above; it lets the database drop pairs before it has seen all the components.
            others = [other for other in spec.sources if other is not source]
            conditions += [f"{o.alias}.__ts - {source.alias}.__ts <= {width(query, source)}" for o in others]
    items = spec.items(streams)
    columns = [*_select(items, time), f"{time} AS t", f"{_over('greatest', spec.sources, '__step')} AS step"]
    relations = [_relation(query, number, source, last) for number, source in enumerate(spec.sources)]
    sql = f"SELECT {', '.join(columns)} FROM {', '.join(relations)}{_where(conditions)} ORDER BY t"
    return _answer(streams, spec, items, _fetch(sql))


def _instants(arrivals: Arrivals, query: Lifetime, last: int, shift: int = 0) -> dict[int, int]:
    """The instants that the watermark has passed, each with the step in which it did; DuckDB has them as `instants`."""
    spec, every = query.spec, query.spec.every
    assert every is not None
    ends = [arrivals.query_watermark(spec.streams, step) for step in range(last)]
    firsts = [t for s in spec.streams for t in arrivals.admitted[s]["__ts"].to_pylist()]
    reached = ends[-1] if ends else None
    start = math.ceil((min(firsts) - shift) / every) * every + shift if firsts else 0
    instants = list(range(start, reached, every)) if reached is not None and firsts else []
    connection().register("instants", pa.table({"t": pa.array(instants, pa.int64())}))
    return {t: next(step for step, end in enumerate(ends) if end is not None and t < end) for t in instants}


def _aggregate(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime, last: int) -> Answer:
    """An aggregate: at every instant the watermark has passed, over the combinations all in their windows then."""
    spec = query.spec
    put_out = _instants(arrivals, query, last)
    conditions = [c.sql or c.text for c in spec.where]
    conditions += [f"instants.t BETWEEN {s.alias}.__ts AND {s.alias}.__until" for s in spec.sources]
    items = spec.items(streams)
    columns = [*_select(items, "instants.t"), "instants.t AS t"]
    relations = [_relation(query, number, source, last) for number, source in enumerate(spec.sources)]
    sql = f"SELECT {', '.join(columns)} FROM {', '.join(relations)}, instants{_where(conditions)}"
    having = f" HAVING {spec.having}" if spec.having else ""
    found = _fetch(f"{sql} GROUP BY {', '.join(['instants.t', *spec.group_by])}{having} ORDER BY t")
    steps = pa.array([put_out[t] for t in found["t"].to_pylist()], pa.int64())
    return _answer(streams, spec, items, found.append_column("step", steps))


def _of_relation(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime, last: int) -> Answer:
    """DSTREAM: each combination in the first microsecond that it is no longer in the relation; RSTREAM: at instants."""
    spec = query.spec
    born, dies = _over("greatest", spec.sources, "__ts"), _over("least", spec.sources, "__until")
    conditions = [*(c.sql or c.text for c in spec.where), f"{born} <= {dies}"]
    relations = [_relation(query, number, source, last) for number, source in enumerate(spec.sources)]
    time = f"{dies} + 1"
    if spec.relation == "RSTREAM":
        _instants(arrivals, query, last)
        time = "instants.t"
        relations.append("instants")
        conditions.append(f"instants.t BETWEEN {born} AND {dies}")
    items = spec.items(streams)
    columns = [*_select(items, time), f"{time} AS t"]
    found = _fetch(f"SELECT {', '.join(columns)} FROM {', '.join(relations)}{_where(conditions)} ORDER BY t")
    ends = [arrivals.query_watermark(spec.streams, step) for step in range(last)]
    times = found["t"].to_pylist()
    steps = [next((n for n, end in enumerate(ends) if end is not None and t < end), None) for t in times]
    known = found.append_column("step", pa.array(steps, pa.int64()))
    return _answer(streams, spec, items, known.filter(known["step"].is_valid()))


def _ranked(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime, last: int) -> Answer:
    """The first rows of each group at every instant that the watermark has passed; equal ones in order of what is
    selected.
    """
    spec = query.spec
    assert isinstance(spec, RankedSpec)
    put_out = _instants(arrivals, query, last, shift=-1 if spec.windowed else 0)
    conditions = [c.sql or c.text for c in spec.where]
    conditions += [f"instants.t BETWEEN {s.alias}.__ts AND {s.alias}.__until" for s in spec.sources]
    items = spec.items(streams)
    rank = spec.rank(("instants.t", *spec.group_by), tuple(item.text for item in items))
    columns = [*_select(items, "instants.t"), f"{rank} AS rn", "instants.t AS t"]
    relations = [_relation(query, number, source, last) for number, source in enumerate(spec.sources)]
    found = _fetch(
        f"SELECT {', '.join(columns)} FROM {', '.join(relations)}, instants{_where(conditions)} "
        f"QUALIFY {spec.asked(rank, spec.written())} ORDER BY t"
    )
    steps = pa.array([put_out[t] for t in found["t"].to_pylist()], pa.int64())
    return _answer(streams, spec, (*items, Item("rn")), found.append_column("step", steps))


def _outer(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime, last: int) -> Answer:
    """An outer, semi or anti join: a match at once, all else in the step in which the watermark passes its time."""
    spec = query.spec
    assert isinstance(spec, OuterSpec)
    items = spec.items(streams)
    seen = f"WHERE __step >= {query.since} AND __step < {last}"
    told, joined = spec.sql(*(f"(SELECT * FROM source_{number} {seen})" for number in (0, 1)))
    columns = ["NULL" if item.text == TIME else item.text for item in items]
    texts = [f"{text} AS c{place}" for place, text in enumerate(columns)]
    found = _fetch(f"SELECT {', '.join(texts)}, {told} {joined} ORDER BY t")
    for place, item in enumerate(items):
        found = found.set_column(place, f"c{place}", found["t"]) if item.text == TIME else found
    ends = [arrivals.query_watermark(spec.streams, step) for step in range(last)]
    passed = [(step, end) for step, end in enumerate(ends) if end is not None and step >= query.since]
    steps = [
        next((number for number, end in passed if t < end), None) if step is None else step
        for t, step in zip(found["t"].to_pylist(), found["step"].to_pylist(), strict=True)
    ]
    known = found.set_column(found.column_names.index("step"), "step", pa.array(steps, pa.int64()))
    return _answer(streams, spec, items, known.filter(known["step"].is_valid()))


def _difference(streams: tuple[StreamSpec, ...], arrivals: Arrivals, query: Lifetime, last: int) -> Answer:
    """A difference: the log of what is left of each minuend row's lifetime without those of the rows that match it."""
    spec = query.spec
    minuend = spec.sources[0]
    items = spec.items(streams)
    columns = [*_select(items, "NULL"), "__ts AS born", "__until AS dies", f"{minuend.alias}.__arrival AS id"]
    own = [c.sql or c.text for c in spec.where if c.aliases == (minuend.alias,) or not c.aliases]
    rows = _fetch(
        f"SELECT {', '.join(columns)} FROM {_relation(query, 0, minuend, last)}{_where(own)} ORDER BY born, id"
    )
    covers: dict[int, list[tuple[int, int]]] = {}
    for number, part in enumerate(spec.subtracted, start=1):
        for row, born, dies in _covers(query, number, part, last):
            covers.setdefault(row, []).append((born, dies))
    changes: list[tuple[int, int, str]] = []
    ids, births, deaths = (rows[name].to_pylist() for name in ("id", "born", "dies"))
    for place, (row, born, dies) in enumerate(zip(ids, births, deaths, strict=True)):
        for begin, end in _uncovered(born, dies, covers.get(row, [])):
            changes.append((begin, place, "+"))
            if end < FOREVER:
                changes.append((end + 1, place, "-"))
    ends = [arrivals.query_watermark(spec.streams, step) for step in range(last)]
    reached = ends[-1] if ends else None
    changes = sorted(c for c in changes if reached is not None and c[0] < reached)
    steps = [next(step for step, end in enumerate(ends) if end is not None and t < end) for t, _, _ in changes]
    table = rows.take(pa.array([place for _, place, _ in changes], pa.int64())).select(range(len(items)))
    times = pa.array([t for t, _, _ in changes], pa.int64())
    for place, item in enumerate(items):
        if item.text == TIME:
            table = table.set_column(place, f"c{place}", times)
    table = table.append_column("_op", pa.array([op for _, _, op in changes], pa.string()))
    table = table.append_column("t", times).append_column("step", pa.array(steps, pa.int64()))
    return _answer(streams, spec, items, table, log=True)


def _covers(query: Lifetime, number: int, part: Subtrahend, last: int) -> list[tuple[int, int, int]]:
    """For each minuend row its matches in one subtrahend: the row, and the match's lifetime."""
    minuend, other = query.spec.sources[0].alias, part.source.alias
    conditions = [f"{minuend}.{column} = {other}.{column}" for column in part.columns]
    conditions += [c.sql or c.text for c in query.spec.where if c.aliases == (other,)]
    relations = [_relation(query, 0, query.spec.sources[0], last), _relation(query, number, part.source, last)]
    sql = (
        f"SELECT {minuend}.__arrival AS row, {other}.__ts AS born, {other}.__until AS dies FROM {', '.join(relations)}"
    )
    found = _fetch(sql + _where(conditions))
    return list(zip(*(found[name].to_pylist() for name in ("row", "born", "dies")), strict=True))


def _uncovered(born: int, dies: int, covers: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of [born, dies] without the covers, as intervals that do not touch."""
    left: list[tuple[int, int]] = []
    at = born
    for begin, end in sorted(covers):
        if begin > dies:
            break
        if end < begin:
            continue  # never alive: pushed out of a ROWS window at the very time it came
        if begin > at:
            left.append((at, begin - 1))
        at = max(at, end + 1)
    if at <= dies:
        left.append((at, dies))
    return left


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""


def moment(streams: tuple[StreamSpec, ...], spec: QuerySpec) -> pa.DataType:
    """The type of the time of a result: DuckDB's `greatest` of timestamps, of which one has a zone, has one."""
    kinds = [stream.schema.field(stream.timestamp).type for stream in streams if stream.name in spec.streams]
    zoned = any(pa.types.is_timestamp(kind) and kind.tz for kind in kinds)
    return pa.timestamp("us", "UTC" if zoned else None)


def _answer(
    streams: tuple[StreamSpec, ...], spec: QuerySpec, items: tuple[Item, ...], found: pa.Table, *, log: bool = False
) -> Answer:
    times, steps = found["t"].to_pylist(), found["step"].to_pylist()
    names = output_names(items, log=log)
    table = found.drop_columns(["t", "step"]).rename_columns(names)
    for place, item in enumerate(items):
        if item.text == TIME:
            moments = table.column(place).cast(pa.int64()).cast(moment(streams, spec))
            table = table.set_column(place, names[place], moments)
    approximate = frozenset(name for name, item in zip(names, items, strict=False) if item.approximate)
    return Answer(table, times, steps, approximate)
