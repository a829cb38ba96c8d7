"""What of a query matters to sharing: which chain it fits into, and what it reads of each source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.model.frozen import kept_with
from midstream.model.ids import digest
from midstream.model.window import Clock, Window, WindowKind
from midstream.plan.notation import parse_plan
from midstream.plan.signature import Signature, canonical, relabel_plan, signature
from midstream.state.lineage import filter_text

SCOPE = "shared"
"""Stands in the signatures of states that queries of any window and filter share."""


@dataclass(frozen=True)
class Shape:
    """A query as the user wrote it, and canonical, and by label its filter, the size of its window, its columns.

    `family` tells which queries it can share joins with: equal except for windows, filters and select lists. Two
    queries share a node of a tree where its signature, without window and filter, is equal.
    """

    user: Query
    query: Query
    names: Mapping[str, str]
    family: str
    bases: Mapping[str, str]
    filters: Mapping[str, tuple[Expression, ...]]
    texts: Mapping[str, str]
    sizes: Mapping[str, int]
    columns: Mapping[str, tuple[str, ...]]

    def kind(self, label: str) -> WindowKind:
        """Return the unit in which the window on a source is measured."""
        window = self.query.source(label).window
        assert window is not None
        return window.kind


def can_share(query: Query) -> bool:
    """Return whether a query can run in a chain: a join of windows whose results are its answer, none rejected."""
    return (
        query.plain
        and len(query.sources) > 1
        and not query.rejects
        and all(s.window is not None for s in query.sources)
    )


def shape_of(query: Query) -> Shape:
    """Return the shape of a query that `can_share`, computed once for each query."""
    return kept_with(query, "_shape", _shape_of)


def _shape_of(user: Query) -> Shape:
    query, names = canonical(user)
    labels = query.aliases
    filters = {a: tuple(e for alias, e in query.selections if alias in (a, "")) for a in labels}
    whole = base_signature(query, labels)
    return Shape(
        user,
        query,
        names,
        digest(whole.text()),
        {a: f"{a} {base_signature(query, (a,)).digest()}" for a in labels},
        filters,
        {a: filter_text(filters[a]) for a in labels},
        {s.alias: s.window.size for s in query.sources if s.window is not None},
        {a: tuple(sorted({*query.kept_columns(a), *_columns(filters[a], a)})) for a in labels},
    )


def base_signature(query: Query, labels: tuple[str, ...]) -> Signature:
    """Compute the signature of the shared state over these sources, whichever queries read it."""
    clocks = "".join(f" {Clock(stream)}" for stream in sorted(query.counted))
    return signature(query, labels, SCOPE + clocks, "")


def representative(shapes: Mapping[str, Shape]) -> Query:
    """Build the query that represents all: their join, with the widest window on each source and no filter."""
    first = next(iter(shapes.values()))
    widest = {a: max(shape.sizes[a] for shape in shapes.values()) for a in first.query.aliases}
    sources = tuple(replace(s, window=Window(first.kind(s.alias), widest[s.alias])) for s in first.query.sources)
    return replace(first.query, text="", sources=sources, outputs=(), selections=())


def _columns(conditions: tuple[Expression, ...], label: str) -> set[str]:
    return {c.name for condition in conditions for c in condition.columns() if c.alias == label}


def canonical_plan(query: Query, plan: str) -> str:
    """Translate a query's plan to the labels that it shares with others."""
    shape = shape_of(query)
    return relabel_plan(parse_plan(plan, shape.user), shape.names).notation()


def own_plan(query: Query, notation: str) -> str:
    """Translate a plan in terms of labels to the query's own aliases."""
    shape = shape_of(query)
    back = {label: alias for alias, label in shape.names.items()}
    return relabel_plan(parse_plan(notation, shape.query), back).notation()
