"""State signatures: what a state holds, canonical and order-free.

Equal signature = same content = shareable. Matching (Zhu §4.1.1), decomposition (HybMig §3.1), sharing and recovery all
use this one notion. Where Zhu identifies a state by its column ids, a signature also names windows, selections,
predicates and the step since which rows count, so that it holds across queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from midstream.expr.expression import Call, Column, Expression
from midstream.logical.query import EquiPredicate, Query
from midstream.model.ids import digest
from midstream.plan.key_classes import key_classes
from midstream.plan.tree import Eddy, Form, Join, Leaf, MultiJoin, Plan


class ViewKind(Enum):
    """What the states of a view are for."""

    NEW = "+"
    """The new plan, while it lacks old combinations."""

    OLD = "-"
    """The old plan, where it leaves out what the new plan makes."""

    QUEUE = "="
    """Rows that wait to be fed to the new plan."""

    BACKGROUND = "~"
    """Combinations that are completed in the background."""


@dataclass(frozen=True)
class ViewName:
    """States that a transition, by its name, has for itself, and what for.

    >>> str(ViewName("q.12.0:A+B", ViewKind.NEW))
    'q.12.0:A+B+/'
    """

    transition: str
    kind: ViewKind

    def __str__(self) -> str:
        return f"{self.transition}{self.kind.value}/"


@dataclass(frozen=True)
class Signature:
    """What a state holds: its inputs and the predicates between them, as sorted texts.

    `view` names the migrations under way, the youngest first, that hold only a part of that content.
    """

    scope: str
    inputs: tuple[str, ...]
    predicates: tuple[str, ...]
    view: tuple[ViewName, ...] = ()

    def text(self) -> str:
        """Format the signature in full."""
        seen = f"|{''.join(map(str, self.view))}" if self.view else ""
        return f"{self.scope}|{' , '.join(self.inputs)}|{' and '.join(self.predicates)}{seen}"

    def whole(self) -> Signature:
        """Return the signature of the state that holds everything."""
        return replace(self, view=()) if self.view else self

    def within(self, view: ViewName) -> Signature:
        """Return the signature of the part of this content that a view holds."""
        return replace(self, view=(view, *self.view))

    def is_within(self, view: ViewName) -> bool:
        """Return whether this belongs directly to a view."""
        return self.view[:1] == (view,)

    def digest(self) -> str:
        """Hash the signature to twelve hexadecimal digits."""
        return digest(self.text())


def signature(query: Query, labels: Iterable[str], scope: str, needs: str | None = None) -> Signature:
    """Compute the signature of a canonical query's state over these sources.

    `scope` keeps states apart that must not be shared: the step since which rows count, and the query's name when
    sharing is off. All predicates whose sources are within `labels` hold in the state, independent of the plan's shape;
    equalities appear as key classes, implied ones included.

    Where queries of different windows and filters share states, `needs` says what they need of this one together;
    windows and filters of the query itself are then left out. Base rows may be used by any query: there it is empty.
    """
    inside = frozenset(labels)
    if needs is None:
        inputs = tuple(sorted(_input_text(query, label) for label in inside))
    else:
        inputs = tuple(sorted(_open_text(query, label) for label in inside))
        scope = f"{scope} {needs}".rstrip()
    held = [p.expression.text() for p in query.predicates if p.aliases() <= inside and not isinstance(p, EquiPredicate)]
    for key_class in key_classes(query):
        members = replace(key_class, members=key_class.within(inside))
        if len({alias for m in members.members for alias in m.aliases()}) > 1:
            held.append(members.text())
    return Signature(scope, inputs, tuple(sorted(held)))


def canonical(query: Query) -> tuple[Query, dict[str, str]]:
    """Replace a query's aliases by labels that other queries share; returns the query and the map of alias to label.

    A stream that occurs once is labelled by its own name, so that `A x` in one query and `A y` in another are one
    input; a stream joined with itself keeps its aliases apart.
    """
    streams = [s.stream for s in query.sources]
    names = {s.alias: s.stream if streams.count(s.stream) == 1 else f"{s.stream}#{s.alias}" for s in query.sources}
    return relabel_query(query, names), names


def relabel_query(query: Query, names: Mapping[str, str]) -> Query:
    """Rename the aliases of a query throughout."""
    if all(alias == name for alias, name in names.items()):
        return query
    rename = partial(relabel, names=names)
    return replace(
        query,
        sources=tuple(replace(s, alias=names[s.alias]) for s in query.sources),
        outputs=tuple(replace(o, expression=relabel(o.expression, names)) for o in query.outputs),
        selections=tuple((names.get(alias, alias), relabel(e, names)) for alias, e in query.selections),
        predicates=tuple(p.renamed(rename) for p in query.predicates),
        on_top=query.on_top and query.on_top.renamed(rename, names),
    )


def relabel_plan(plan: Plan, names: Mapping[str, str]) -> Plan:
    """Rename the aliases of a plan throughout."""
    match plan:
        case Leaf(alias):
            return Leaf(names[alias])
        case Join(left, right):
            return Join(relabel_plan(left, names), relabel_plan(right, names))
        case MultiJoin(orders):
            return MultiJoin(tuple((names[a], tuple(names[b] for b in order)) for a, order in orders))
        case Eddy(sources, policy):
            return Eddy(tuple(names[a] for a in sources), policy)
        case Form(name, tree):
            return Form(name, relabel_plan(tree, names))
    raise TypeError(plan)


def relabel(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Rename the aliases of an expression."""
    match expression:
        case Column(alias=alias):
            return replace(expression, alias=names.get(alias, alias))
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(relabel(a, names) for a in arguments))
    return expression


def _open_text(query: Query, label: str) -> str:
    window = query.source(label).window
    return f"{label}[{window.kind if window else ''}]"


def _input_text(query: Query, label: str) -> str:
    source = query.source(label)
    window = f"[{source.window.kind} {source.window.size}]" if source.window else ""
    conditions = sorted(e.text() for alias, e in query.selections if alias in (label, ""))
    return f"{label}{window}{{{' and '.join(conditions)}}}"
