"""CQL text to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from types import MappingProxyType

from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression, Literal, is_result_time
from midstream.expr.functions import CATALOGUE, always, asks_user, call, function_of
from midstream.expr.types import BOOLEAN
from midstream.logical.implied_windows import with_implied_windows
from midstream.logical.join_times import whole
from midstream.logical.predicates import classify
from midstream.logical.query import Lookups, Query, Source
from midstream.logical.result_time import result_time
from midstream.logical.row_checks import may_reject, with_checks
from midstream.model.errors import LanguageError, QueryError
from midstream.model.frozen import kept_with
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema, TableSchema
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import CalendarWindow, calendar_window
from midstream.sql.clauses import Clauses, clauses_of
from midstream.sql.enrichment import EnrichedStream
from midstream.sql.from_clause import (
    check_predicates,
    check_rows_windows,
    check_windows,
    difference_of,
    event_times,
)
from midstream.sql.group_window import GroupWindow, SessionWindow, group_window
from midstream.sql.grouping import grouped
from midstream.sql.join_parts import JoinPart, may_join
from midstream.sql.moments import moments
from midstream.sql.outer_join_clause import check_evaluable, outer_join_of, placed, scope_above
from midstream.sql.over_clause import over_rows
from midstream.sql.parts import Statement, not_too_deep
from midstream.sql.place import error_at
from midstream.sql.qualified import node_of
from midstream.sql.relation_operator import check_relation, related
from midstream.sql.scope import Scope
from midstream.sql.select_list import outputs_of
from midstream.sql.table_join import LookedUp, keys_of_streams, looked_up
from midstream.sql.top_n_clause import is_over, ranked


def parse_query(
    text: str | Statement,
    streams: Mapping[str, StreamSchema],
    *,
    registered: bool = True,
    tables: Mapping[str, TableSchema] = MappingProxyType({}),
) -> Query:
    """The query of a CQL text over known streams and static tables, typed and classified.

    Raises LanguageError, which names the place in the text and what to do. Predicates of users must be `registered`,
    and fit their arguments; without that their names suffice, as for a checkpoint that is only read.

    >>> import pyarrow as pa
    >>> A = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
    >>> query = parse_query("SELECT a.k FROM A [RANGE 5 SECONDS] a, A b WHERE a.k = b.k WINDOW 9 SECONDS", {"A": A})
    >>> [(s.alias, s.window.size) for s in query.sources], len(query.predicates)
    ([('a', 5000000), ('b', 9000000)], 1)
    """
    statement = Statement.of(text) if isinstance(text, str) else text
    # A command is bound when it is given, and again by the step that takes it: most often over the same streams.
    over, bound = (dict(streams), dict(tables), registered), statement.__dict__.get("bound")
    if bound is not None and bound[0] == over:
        known: Query = bound[1]
        return known
    with not_too_deep(statement.text):
        query = replace(_parse(statement, streams, tables, registered), text=statement.sql)
    if not any(map(asks_user, query.expressions())):  # What users have registered may change.
        statement.__dict__["bound"] = (over, query)
    return query


def bind_query(manifest: Manifest, sql: Statement) -> Query:
    """Bind a query to a manifest's streams and static tables; predicates of users do not have to be registered here."""
    return parse_query(sql, manifest.streams, registered=False, tables=manifest.table_schemas)


def bind_to_run(manifest: Manifest, sql: Statement) -> Query:
    """Bind a query that is to run here: the predicates of users that it asks must be registered, and fit."""
    return parse_query(sql, manifest.streams, tables=manifest.table_schemas)


def check_registered(query: Query) -> None:
    """Raise a QueryError unless what a bound query calls is known here, takes such arguments and gives such values."""
    for called in (node for part in query.expressions() for node in part.walk()):
        if not isinstance(called, Call) or called.function in CATALOGUE:
            continue
        place = f"function {called.function}"
        try:
            type, _ = function_of(called.function).rule(called.arguments)
        except LanguageError as error:
            raise QueryError(f"{called.function!r}: {error.message}", place=place, remedy=error.remedy) from error
        if type != called.type:
            said = f"{called.function!r} gives values of type {type}, but the query was added with a "
            f"version that gives {called.type}"
            raise QueryError(said, place=place, remedy="install that version of the function's package")


def derived_parts(manifest: Manifest, query: Statement) -> tuple[EnrichedStream | JoinPart, ...]:
    """The parts of a query that stand in no brackets, each before those that read its answers: they look rows up in
    static tables, or join for joins and aggregates above. Raises LanguageError.
    """
    text, joins = query.sql.lower(), kept_with(query, "may_join", lambda it: may_join(it.parts.whole))
    if not joins and not any(name.lower() in text for name in manifest.tables):
        return ()
    with not_too_deep(query.text):
        return clauses_of(query, manifest.streams, manifest.table_schemas, Scope((), registered=False)).parts


def _parse(
    statement: Statement,
    streams: Mapping[str, StreamSchema],
    tables: Mapping[str, TableSchema],
    registered: bool,
) -> Query:
    clauses = clauses_of(statement, streams, tables, Scope((), registered=registered))
    text, found, scope, named = clauses.text, clauses.found, clauses.names, clauses.tables
    sources, join = clauses.sources(streams), clauses.join
    check_rows_windows(found, clauses.tree, sources, streams)
    opened = named.opened(scope)
    window: GroupWindow | SessionWindow | CalendarWindow | None
    tree, sources, window = group_window(found, clauses.tree, Binder(text, opened), sources, streams)
    if window is None:
        sources, window = moments(found, tree, Binder(text, opened), sources, streams)
    if window is None:
        sources, window = calendar_window(found, tree, Binder(text, opened), sources, streams)
    outer = outer_join_of(tree, sources, () if join is None else join.until)
    seen = opened if outer is None else scope_above(outer, opened, sources, streams)
    joined = [Binder(text, opened).condition(node) for node in clauses.on]
    joined += [] if join is None else join.apart
    filters = [Binder(text, seen).condition(node) for node in clauses.where]
    if outer is not None:
        joined, filters, outer = placed(outer, joined, filters, sources, streams)
    looks_up = bool(named.tables) and clauses.enrichment is None
    found_rows = looked_up(text, named, clauses.shown, scope, filters) if looks_up else LookedUp(tuple(filters))
    ties, difference = difference_of(found, named.streams_alone(scope))
    conditions = (*_conditions_of_subqueries(clauses, sources), *joined, *found_rows.before, *ties)
    selections, predicates = classify(_all(conditions))
    check_predicates(found, predicates, len(ties))
    if difference is None and found.every is None:
        sources = with_implied_windows(sources, predicates, streams)
    check_windows(found, sources, clauses.offsets)
    keys = keys_of_streams(found_rows.lookups)
    selections, kept = with_checks(selections, (*predicates, *keys), event_times(sources, streams))
    predicates = kept[: len(predicates)]
    if outer is not None:
        check_evaluable(found, tree, predicates)
    time = result_time(sources, streams)
    subtracted = () if difference is None else difference.subtrahends
    selected = replace(seen, sources=tuple(one for one in seen.sources if one[0] not in subtracted), time=time)
    read = tuple(dict.fromkeys(table.table.name for table in named.tables if not table.is_list))
    query = Query(text, sources, (), selections, predicates, tables=read, time=time)
    check_relation(found, sources, join is not None)
    asked, above = clauses.qualified, None
    if asked is not None:
        others: dict[str, object] = {"OVER": is_over(tree), "EXCEPT": difference, "an outer join": outer}
        others |= {"ISTREAM, DSTREAM or RSTREAM": found.relation, "lookups in static tables": named.tables}
        above = node_of(Binder(text, selected), asked, next((what for what, one in others.items() if one), ""))
    if clauses.relation:
        outputs, stream = outputs_of(Binder(text, selected), tree), related(found, clauses.relation)
        return _complete(replace(query, outputs=outputs, on_top=stream))
    top = clauses.top
    if top is None and is_over(tree):
        outputs, aggregate, source = over_rows(found, tree, selected, sources, streams)
        return _complete(replace(query, sources=(source,), outputs=outputs, on_top=aggregate))
    aggregated = grouped(found, tree, selected, window) if top is None else ranked(found, tree, selected, window, top)
    if aggregated is None:
        query = replace(query, outputs=outputs_of(Binder(text, selected), tree))
        timed = _timed(clauses, streams, selected, query) if difference is None else None
        looked = Lookups(found_rows.lookups, found_rows.kept_if) if found_rows.lookups else None
        return _complete(replace(query, timed=timed, on_top=difference or outer or looked or above))
    if asked is not None:
        node_of(Binder(text, selected), asked, "an aggregate")
    if difference is not None:
        raise error_at(
            text, tree, "a query with EXCEPT cannot have an aggregate", "aggregate its change log in a second query"
        )
    outputs, aggregate = aggregated
    return _complete(replace(query, outputs=outputs, on_top=aggregate))


def _conditions_of_subqueries(clauses: Clauses, sources: tuple[Source, ...]) -> list[Expression]:
    """Return the conditions of the subqueries that the text reads as sources, except for those that are parts."""
    named = {(source.alias, source.stream) for source in clauses.source.sources}
    shown = (clauses.shown.get(source.alias) for source in sources if (source.alias, source.stream) in named)
    return [condition for one in shown if one is not None for condition in one.conditions]


def _timed(clauses: Clauses, streams: Mapping[str, StreamSchema], scope: Scope, query: Query) -> tuple[int, int] | None:
    """Find the output `_ts` that is the event time of a source's rows, and how late the answers are for it."""
    place = next((at for at, output in enumerate(query.outputs) if output.name == TIME_COLUMN), None)
    if place is None or is_result_time(query.outputs[place].expression):
        return None
    times = clauses.times(streams)
    for alias in times.present:
        shown = scope.shown(Column(scope.moment, alias, TIME_COLUMN))
        if shown == query.outputs[place].expression and alias in times.always and times.late[alias] < inf:
            return place, whole(times.late[alias])
    return None


def _complete(query: Query) -> Query:
    return replace(query, rejects=True) if may_reject(query) else query


def _all(conditions: tuple[Expression, ...]) -> Expression:
    result: Expression = Literal(BOOLEAN, True)
    for condition in conditions:
        result = condition if always(result) else call("and", result, condition)
    return result
