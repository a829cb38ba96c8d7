"""The states of a query that other queries of its lane group keep: to a plan that is made of them they are free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from midstream.model.manifest import Manifest
from midstream.optimizer.statistics import Sources
from midstream.plan.decompose import subplans
from midstream.plan.signature import relabel_plan
from midstream.plan.tree import Join, Leaf, Plan
from midstream.step.program import compile_program, unit_of
from midstream.step.unit import Unit


def kept_by_others(manifest: Manifest, query: str) -> Mapping[Sources, Plan]:
    """Find the states that other plans keep: by the user's aliases the sources, with the subplan that makes the state
    there.

    Equal signatures are equal contents. A query on its way to another plan is left out: what it keeps it may give up.
    """
    own, group = unit_of(manifest, query), manifest.queries[query].group
    aliases = {label: alias for alias, label in own.labels_of(query).items()}
    found: dict[Sources, Plan] = {}
    for other in compile_program(manifest, group, {}).units:
        moves = any(manifest.queries[name].migrations for name in other.queries)
        if other.name != own.name and not moves and not set(own.streams).isdisjoint(other.streams):
            for labels, plan in _common(own, other):
                renamed = relabel_plan(plan, {label: aliases[label] for label in labels})
                found.setdefault(frozenset(aliases[label] for label in labels), renamed)
    return found


def _common(own: Unit, other: Unit) -> Iterator[tuple[Sources, Plan]]:
    # Except that of the whole query. What another form than a tree makes, such as STAIRs, can be no part of a tree.
    box, labels = other.box(other.plan), frozenset(source.alias for source in own.query.sources)
    joins = {held: plan for held, plan in subplans(box.plan).items() if isinstance(plan, Join)}
    parts = {**joins, **{frozenset({alias}): Leaf(alias) for alias in box.plan.aliases()}}
    for spec in other.requirements(box).specs:
        held = frozenset(spec.labels)
        if held < labels and held in parts:
            mine = own.binding.state(held, "scan") if len(held) > 1 else own.binding.rows()[spec.labels[0]]
            if mine.id.same_content(spec.id):
                yield held, parts[held]
