"""Which sources of a query its conditions tie together."""

from __future__ import annotations

from midstream.language.query import Query


def tied_sources(query: Query) -> tuple[tuple[str, ...], ...]:
    """Group the sources that conditions connect, in order of FROM; several groups mean a cross join.

    >>> import pyarrow as pa
    >>> from midstream.language.parse import parse_query
    >>> from midstream.model.schema import StreamSchema
    >>> columns = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    >>> streams = {name: StreamSchema(name, columns, "ts") for name in "ABC"}
    >>> tied_sources(parse_query("SELECT A.k FROM A, B, C WHERE A.k < C.k WINDOW 5 SECONDS", streams))
    (('A', 'C'), ('B',))
    """
    groups = [{alias} for alias in query.aliases]
    for predicate in query.predicates:
        tied = [group for group in groups if group & predicate.aliases()]
        groups = [group for group in groups if not group & predicate.aliases()] + [set().union(*tied)]
    ordered = [tuple(alias for alias in query.aliases if alias in group) for group in groups]
    return tuple(sorted(ordered, key=lambda group: query.aliases.index(group[0])))
