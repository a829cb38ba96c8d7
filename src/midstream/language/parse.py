"""CQL text to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from midstream.language.bind import Binder
from midstream.language.checks import may_reject, with_checks
from midstream.language.cql_tokens import split_cql
from midstream.language.existence import with_existence_joined
from midstream.language.expression import Expression, Literal
from midstream.language.functions import always, asks_user, call
from midstream.language.group_window import group_window
from midstream.language.grouping import grouped
from midstream.language.implied_windows import with_implied_windows
from midstream.language.outer_join import check_evaluable, outer_join_of, placed, scope_above
from midstream.language.parts import parts_of
from midstream.language.place import place_of
from midstream.language.predicates import classify
from midstream.language.query import Query
from midstream.language.scope import Scope
from midstream.language.select_list import distinct_grouped, outputs_of, select_of
from midstream.language.sources import check_predicates, check_windows, difference_of, sources_of, used_names
from midstream.language.subqueries import shown_of
from midstream.language.top_n import ranked, top_n_of, with_qualify
from midstream.language.types import BOOLEAN
from midstream.model.errors import LanguageError
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema

Streams = tuple[StreamSchema, ...]


def parse_query(
    text: str, streams: Mapping[str, StreamSchema], *, registered: bool = True, checked: bool = True
) -> Query:
    """The query of a CQL text over known streams, typed and classified.

    Raises LanguageError, which names the place in the text and what to do. Predicates of users must be `registered`,
    and fit their arguments; without that their names suffice, as for a checkpoint that is only read. What cannot be
    evaluated is `checked`, or NULL as in jobs from before.

    >>> import pyarrow as pa
    >>> A = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
    >>> query = parse_query("SELECT a.k FROM A [RANGE 5 SECONDS] a, A b WHERE a.k = b.k WINDOW 9 SECONDS", {"A": A})
    >>> [(s.alias, s.window.size) for s in query.sources], len(query.predicates)
    ([('a', 5000000), ('b', 9000000)], 1)
    """
    try:
        return replace(_parse(text, streams, registered, checked), text=text)
    except RecursionError:
        raise LanguageError("the query is nested too deeply", remedy="split it into several queries") from None


def parsed(manifest: Manifest, sql: str) -> Query:
    """A query's text over a manifest's streams, parsed once."""
    global _latest
    streams, strict, queries = _latest
    if streams is not manifest.streams or strict != manifest.checked or len(queries) >= _REMEMBERED:
        streams, strict, queries = _latest = manifest.streams, manifest.checked, {}
    if sql not in queries:
        queries[sql] = parsed_over(tuple(streams.values()), sql, strict)
    return queries[sql]


_REMEMBERED = 1 << 14

_latest: tuple[Mapping[str, StreamSchema], bool, dict[str, Query]] = ({}, True, {})
"""Streams stay for many steps, in each of which a query is looked up often: to compare them all would take longer."""


def checked(manifest: Manifest, sql: str) -> Query:
    """The same of a query that is to run here: the predicates of users that it asks must be registered, and fit."""
    query = parsed(manifest, sql)
    return (
        parse_query(sql, manifest.streams, checked=manifest.checked)
        if any(map(asks_user, query.expressions()))
        else query
    )


@lru_cache(maxsize=_REMEMBERED)
def parsed_over(streams: Streams, sql: str, checked: bool = True) -> Query:
    """A query's text over these streams, parsed once; predicates of users need not be registered here."""
    return parse_query(sql, {stream.name: stream for stream in streams}, registered=False, checked=checked)


def _parse(text: str, streams: Mapping[str, StreamSchema], registered: bool, checked: bool) -> Query:
    text = parts_of(text).text
    found = split_cql(text)
    tree = distinct_grouped(found, with_qualify(select_of(found)))
    tree, top = top_n_of(found, tree)
    tree = with_existence_joined(found, tree, streams)
    clause = sources_of(found, tree, streams)
    sources = clause.sources
    bare = Scope((), registered=registered, checked=checked)
    views = {
        s.alias: shown_of(text, s.alias, streams[s.stream].columns, clause.selects[s.alias], bare)
        for s in sources
        if s.alias in clause.selects
    }
    scope = replace(
        bare,
        sources=tuple(
            (s.alias, views[s.alias].schema if s.alias in views else streams[s.stream].columns) for s in sources
        ),
        used=used_names(tree),
        views={(alias, name): e for alias, view in views.items() for name, e in view.columns},
    )
    binder = Binder(text, scope)
    tree, sources, window = group_window(found, tree, binder, sources, streams)
    where = tree.args.get("where")
    conditions = [condition for view in views.values() for condition in view.conditions]
    outer = outer_join_of(found, tree, sources)
    seen = scope if outer is None else scope_above(outer, scope, sources, streams)
    joined = [binder.condition(node) for node in clause.conditions]
    filters = [] if where is None else [Binder(text, seen).condition(where.this)]
    if outer is not None:
        joined, filters, outer = placed(outer, joined, filters, sources, streams)
    conditions += [*joined, *filters]
    ties, difference = difference_of(found, scope)
    selections, predicates = classify(_all((*conditions, *ties)))
    check_predicates(found, predicates, len(ties))
    if difference is None and found.every is None:
        sources = with_implied_windows(sources, predicates, streams)
    check_windows(found, sources, clause.offsets)
    visible = seen.sources if difference is None else scope.sources[:1]
    selected = replace(seen, sources=visible, time=True)
    if checked:
        selections, predicates = with_checks(selections, predicates)
    if outer is not None:
        check_evaluable(found, tree, predicates)
    aggregated = grouped(found, tree, selected, window) if top is None else ranked(found, tree, selected, window, top)
    if aggregated is None:
        outputs = outputs_of(Binder(text, selected), tree)
        query = Query(text, sources, outputs, selections, predicates, None, difference, checked, outer=outer)
        return _complete(query)
    if difference is not None:
        raise LanguageError(
            "aggregates over EXCEPT", place=place_of(text, tree), remedy="aggregate its change log instead"
        )
    outputs, aggregate = aggregated
    return _complete(Query(text, sources, outputs, selections, predicates, aggregate, None, checked))


def _complete(query: Query) -> Query:
    return replace(query, rejects=True) if may_reject(query) else query


def _all(conditions: tuple[Expression, ...]) -> Expression:
    result: Expression = Literal(BOOLEAN, True)
    for condition in conditions:
        result = condition if always(result) else call("and", result, condition)
    return result
