"""Try things without changing the job: SQL over the rows that it keeps, the plan of a new query, a move to a plan."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from midstream.checkpoint.report import report
from midstream.checkpoint.running_states import lanes_of_group, running_boxes, running_units, state_names
from midstream.checkpoint.state_tables import rows_for_people
from midstream.commands.add_query import AddQuery
from midstream.commands.base import taken
from midstream.dashboard.job_reading import JobReading
from midstream.explain.graph import plan_graph
from midstream.logical.query import Query, query_of
from midstream.model.errors import QueryError, fault_located
from midstream.model.extras import from_extra
from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.model.schema import StreamSchema
from midstream.plan.key_classes import key_classes
from midstream.plan.notation import parse_plan
from midstream.plan.tree import Join, Plan
from midstream.proposals.plan_group import plan_group, query_time, without_choice
from midstream.review.review import Reviewing
from midstream.state.base_state import TIME
from midstream.state.chunk_store import ChunkStore
from midstream.state.specs import RowsSpec
from midstream.storage.files import FileStore
from midstream.units.program import unit_of

if TYPE_CHECKING:
    import duckdb

ROWS_SHOWN, TEXT_SHOWN = 200, 300
"""So many rows of an answer are shown, and so many characters of a value."""

LARGEST = 1 << 28
"""Bytes of a stream's kept rows; a query over more than that is left to `ms.open`."""

LONGEST, MEMORY = 10.0, "1GB"
"""A query over kept rows may take so many seconds, and so much memory."""

NAME = "a query that is tried"
WINDOWS = re.compile(r"\bWINDOW\s+\d|\[\s*(RANGE|ROWS)\b", re.IGNORECASE)


@dataclass(frozen=True)
class KeptTable:
    """The state that keeps most rows of a stream, and the lanes that hold it."""

    stream: StreamSchema
    spec: RowsSpec
    lanes: Mapping[LaneId, LaneState]

    @property
    def listings(self) -> list[StateListing]:
        """List the chunks that each lane holds of the state."""
        return [lane.states.get(self.spec.id, StateListing()) for lane in self.lanes.values()]

    @property
    def rows(self) -> int:
        """Count the rows that are alive."""
        return sum(one.live for one in self.listings)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the stream that are kept, in the stream's order."""
        kept = {*self.spec.columns, self.stream.timestamp}
        return tuple(name for name in self.stream.columns.names if name in kept)

    def read(self, store: ChunkStore) -> pa.Table:
        """Read the rows of all lanes, under the columns of the stream.

        Raises `QueryError` if they are more than `LARGEST` bytes.
        """
        size = sum(chunk.bytes for one in self.listings for chunk in one.chunks)
        if size > LARGEST:
            what = f"the dashboard cannot read the {size:,} bytes that the job keeps of {self.stream.name}"
            remedy = "read the rows in a program: midstream.open(CHECKPOINT).state(NAME).duckdb()"
            raise QueryError(what, place="SQL", remedy=remedy)
        parts = [pa.Table.from_batches([store.get(chunk)]) for one in self.listings for chunk in one.chunks]
        return self.shown(pa.concat_tables(parts, promote_options="permissive") if parts else None)

    def shown(self, rows: pa.Table | None) -> pa.Table:
        """Give rows as the state keeps them the columns of the stream."""
        names, clock = self.columns, self.stream.timestamp
        schema = pa.schema([self.stream.columns.field(name) for name in names])
        if rows is None:
            return schema.empty_table()
        plain = rows_for_people(rows)
        kept = {name: plain.column(name) for name in names if name in plain.column_names}
        if clock not in kept:  # A timestamp that no query reads is kept as an instant only.
            instants, declared = plain.column(TIME), schema.field(clock).type
            kept[clock] = instants.cast(declared) if pa.types.is_timestamp(declared) else instants
        return pa.table({name: kept[name] for name in names})


def kept_tables(manifest: Manifest) -> dict[str, KeptTable]:
    """Find by stream the state that keeps most of its rows."""
    found: dict[str, KeptTable] = {}
    for unit in running_units(manifest):
        streams = {source.alias: source.stream for source in unit.query.sources}
        lanes = lanes_of_group(manifest, unit.group)
        for label, spec in unit.binding.rows().items():
            stream = streams.get(label, label)
            if stream in manifest.streams:
                one = KeptTable(manifest.streams[stream], spec, lanes)
                if stream not in found or one.rows > found[stream].rows:
                    found[stream] = one
    return found


def answer(reading: JobReading, sql: str) -> dict[str, Any]:
    """Answer SQL of DuckDB over the rows that are kept of each stream, a table for each stream; it changes nothing.

    The statement sees no file, no network and no other table, and ends after `LONGEST` seconds. A state's dead rows,
    which are not purged yet, count.

    Returns: `columns`, `rows` as lists of texts (None for NULL), and whether there are `more`.
    """
    with from_extra("testing", "SQL over kept rows"):
        import duckdb

    with fault_located(lambda: "SQL"), duckdb.connect(config={"threads": 1, "memory_limit": MEMORY}) as database:
        try:
            statements = database.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise QueryError("only one SELECT can be tried", place="SQL", remedy="leave one SELECT")
            _register(database, reading, database.get_table_names(sql))
            with _limited(database):
                database.execute(statements[0])
                found = database.fetchmany(ROWS_SHOWN + 1)
                columns = [one[0] for one in database.description or ()]
        except duckdb.InterruptException:
            remedy = "ask for less, or read the state with ms.open in a program"
            raise QueryError(
                f"the dashboard stopped the query after {LONGEST:.0f} seconds", place="SQL", remedy=remedy
            ) from None
        except duckdb.Error as error:
            remedy = f"use DuckDB's SQL over the tables {', '.join(kept_tables(reading.manifest)) or '(none yet)'}"
            if WINDOWS.search(sql):
                remedy = "leave out WINDOW n unit, [RANGE n unit] and [ROWS n], which DuckDB does not know"
            raise QueryError(str(error), place="SQL", remedy=remedy) from error
    rows = [[None if value is None else _text(value) for value in row] for row in found[:ROWS_SHOWN]]
    return {"columns": columns, "rows": rows, "more": len(found) > ROWS_SHOWN}


def _register(database: duckdb.DuckDBPyConnection, reading: JobReading, named: set[str]) -> None:
    store = FileStore(reading.checkpoint.folders.chunks.url)
    wanted = {name.strip('"').lower() for name in named}
    for stream, kept in kept_tables(reading.manifest).items():
        if stream.lower() in wanted:
            database.register(stream, kept.read(store))
    # From here on the statement can reach nothing but these tables.
    database.execute("SET enable_external_access = false")
    database.execute("SET python_enable_replacements = false")
    database.execute("SET lock_configuration = true")


@contextmanager
def _limited(database: duckdb.DuckDBPyConnection) -> Iterator[None]:
    timer = threading.Timer(LONGEST, database.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _text(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"


def planned(reading: JobReading, sql: str) -> dict[str, Any]:
    """Find the plan that a new query would get and what it would share, as JSON values; the query is not added.

    Raises the `MidstreamError` that the job would refuse the query by.

    Returns: `plan`, `lanes`, `spread`, `graph` (see `explain.graph`), `shares_with` (queries of its chain), `shared`
    (`name` and `rows` of the states that are there already), and `cross` (sentences on its cross joins).
    """
    with fault_located(lambda: "SQL"):
        after = taken(reading.manifest, AddQuery(NAME, sql))
    found = report(after)
    query = found.query(NAME)
    unit = unit_of(after, NAME)
    names = state_names(unit, running_boxes(after, unit))
    graph = plan_graph(after, found, NAME)  # What other queries' operators have counted is none of this one's.
    held: dict[str, int] = {}
    for lane in lanes_of_group(reading.manifest, unit.group).values():
        for id, listing in lane.states.items():
            if id in names:
                held[names[id]] = held.get(names[id], 0) + listing.live
    others = found.queries.items()
    return {
        "query": NAME,
        "plan": query.plan,
        "lanes": query.lanes,
        "spread": query.spread,
        "graph": {**graph, "steps": None, "nodes": [{**node, "share": None} for node in graph["nodes"]]},
        "shares_with": [name for name, one in others if name != NAME and query.chain and one.chain == query.chain],
        "shared": [{"name": name, "rows": rows} for name, rows in held.items()],
        "cross": cross_joins(query_of(after.queries[NAME]), query.plan),
    }


def moved(reading: JobReading, query: str, plan: str) -> dict[str, Any]:
    """Estimate what a move of a query to a plan would bring, as JSON values; nothing is moved.

    Returns: `plan` as it would be written, `cost` and `running` (the running plan's) as the objective counts them,
    `timed` (they are nanoseconds a second), `strategy` and `work` of the move, None where they are unknown, `why_none`,
    and `cross` (sentences on the plan's cross joins).
    """
    manifest = reading.manifest
    reading.report.query(query)  # raises for an unknown name
    bound = query_of(manifest.queries[query])
    with fault_located(lambda: "plan"):
        written = parse_plan(plan, bound).notation()
    value: dict[str, Any] = dict.fromkeys(("cost", "running", "strategy", "work"))
    one, now = plan_group(manifest, query), query_time(manifest, query)
    why_none = without_choice(manifest, one.lead)
    if not why_none and (now is None or manifest.queries[one.lead].since > manifest.step):
        why_none = "nothing is known of its streams yet"
    if not why_none:
        reviewing = Reviewing(manifest, one, now or 0, FileStore(reading.checkpoint.folders.chunks.url))
        move = reviewing.predict(written)
        value |= {"cost": reviewing.weigh(written), "running": reviewing.running.cost}
        value |= {} if move is None else {"strategy": move.strategy, "work": move.work}
    timed = one.settings.counts_time_alone
    return {"plan": written, **value, "timed": timed, "why_none": why_none, "cross": cross_joins(bound, written)}


def cross_joins(query: Query, plan: str) -> list[str]:
    """Write a sentence for each join of a plan that no condition ties: there every row meets every other.

    >>> import pyarrow as pa
    >>> from midstream.sql.parse import parse_query
    >>> from midstream.model.schema import StreamSchema
    >>> columns = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
    >>> streams = {name: StreamSchema(name, columns, "ts") for name in "ABC"}
    >>> sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.v = C.v WINDOW 5 SECONDS"
    >>> cross_joins(parse_query(sql, streams), "((A C) B)")
    ['no condition ties A and C: every row of the one meets every row of the other']
    >>> cross_joins(parse_query(sql, streams), "((A B) C)")
    []
    """
    return list(_crossing(query, parse_plan(plan, query)))


def _crossing(query: Query, plan: Plan) -> Iterator[str]:
    for child in plan.children():
        yield from _crossing(query, child)
    if not isinstance(plan, Join):
        return
    left, right = frozenset(plan.left.aliases()), frozenset(plan.right.aliases())
    conditions = (p.aliases() for p in query.predicates)
    keyed = any(one.within(left) and one.within(right) for one in key_classes(query))
    if not keyed and not any(names & left and names & right and names <= left | right for names in conditions):
        one, other = (", ".join(a for a in query.aliases if a in side) for side in (left, right))
        yield f"no condition ties {one} and {other}: every row of the one meets every row of the other"
