"""Which queries that are spread over nodes share them: they enter a ring, leave it, or change its orders. Pure.

Nothing is copied and no row is written: base rows are listed again, by the windows and selections of the queries that
share them from this step on (Wang ch. 19).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midstream.logical.query import query_of
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import NodeSpread
from midstream.ring.deploy import begun_slices
from midstream.ring.spreading import spreading
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import can_share, canonical_plan, own_plan, shape_of


def mates_of(manifest: Manifest, name: str) -> list[str]:
    """List the queries that share the nodes of this one, without it, in order of name."""
    entry = manifest.queries[name]
    return [] if entry.nodes is None else [one for one in queries_at(manifest, entry.group) if one != name]


def spread_queries(manifest: Manifest) -> dict[str, NodeSpread]:
    """Return how the queries that have nodes are spread, in order of name. Of queries that share nodes only the
    first is there."""
    found: dict[str, tuple[str, NodeSpread]] = {}
    for name in sorted(name for name, entry in manifest.queries.items() if entry.nodes is not None):
        entry = manifest.queries[name]
        assert entry.nodes is not None
        found.setdefault(entry.group, (name, entry.nodes))
    return dict(found.values())


def queries_at(manifest: Manifest, group: str) -> list[str]:
    """List the queries that are spread over the nodes of a group, in order of name."""
    return sorted(name for name, e in manifest.queries.items() if e.group == group and e.nodes is not None)


def entered(manifest: Manifest, name: str, *, planned: bool) -> Manifest:
    """Put a new query, spread over nodes of its own until now, into a ring that it fits, if there is one.

    It fits one of queries with the same streams and predicates, spread by the same scheme over as many nodes, whose
    probing orders are its own, unless it was not `planned`: then it takes over theirs. It reads the rows that arrive
    from this step on.
    """
    entry = manifest.queries[name]
    group = next((one for one in _groups(manifest, name) if _fits(manifest, name, one, planned)), None)
    if group is None:
        return manifest
    leader = manifest.queries[queries_at(manifest, group)[0]]
    plan = own_plan(query_of(entry), canonical_plan(query_of(leader), leader.plan))
    return regrouped(manifest.with_query(name, replace(entry, plan=plan, group=group, nodes=leader.nodes)), group)


def regrouped(manifest: Manifest, group: str) -> Manifest:
    """List rows again where the nodes of a group have other queries from this step on."""
    names = queries_at(manifest, group)
    if not names:
        return manifest
    first = manifest.queries[names[0]]
    assert first.nodes is not None
    alone = first.nodes.alone if first.nodes.alone in names else ""
    spread = replace(
        first.nodes, since=manifest.step, regrouped=manifest.step, alone=alone, routes={}, orders={}, found={},
        begins=0, before=None,
    )  # fmt: skip
    return _all_with(manifest, names, begun_slices(query_of(first), spread))


def all_spread(manifest: Manifest, name: str, spread: NodeSpread) -> Manifest:
    """Spread a query, and those that share its nodes, in this way."""
    return _all_with(manifest, [name, *mates_of(manifest, name)], spread)


def reordered(manifest: Manifest, name: str) -> Manifest:
    """Give the queries that share a query's nodes its probing orders, each in its own aliases.

    Nodes have none of their own until it is known what the new ones cost.
    """
    entry = manifest.queries[name]
    if entry.nodes is not None:
        manifest = all_spread(manifest, name, replace(entry.nodes, orders={}, found={}))
    plan = canonical_plan(query_of(entry), entry.plan)
    for mate in mates_of(manifest, name):
        other = manifest.queries[mate]
        manifest = manifest.with_query(mate, replace(other, plan=own_plan(query_of(other), plan)))
    return manifest


def _all_with(manifest: Manifest, names: Sequence[str], spread: NodeSpread) -> Manifest:
    entries = {name: replace(manifest.queries[name], nodes=spread) for name in names}
    return replace(manifest, queries={**manifest.queries, **entries})


def _groups(manifest: Manifest, name: str) -> list[str]:
    return sorted({e.group for one, e in manifest.queries.items() if e.nodes is not None and one != name})


def _fits(manifest: Manifest, name: str, group: str, planned: bool) -> bool:
    mine, others = manifest.queries[name], [manifest.queries[one] for one in queries_at(manifest, group)]
    theirs = others[0]
    if not scheme(manifest.sharing).shares or mine.operator is not None or mine.private:
        return False
    if mine.nodes is None or theirs.nodes is None or not all(_is_settled(manifest, one) for one in others):
        return False
    if not can_share(query_of(mine)) or any(one.private for one in others):
        return False
    shape, other = shape_of(query_of(mine)), shape_of(query_of(theirs))
    plans = [canonical_plan(query_of(one), one.plan) for one in (mine, theirs)]
    return shape.family == other.family and _alike(mine.nodes, theirs.nodes) and (not planned or len(set(plans)) == 1)


def _alike(mine: NodeSpread, theirs: NodeSpread) -> bool:
    # Spreads of segments go by windows, so that none fits another query's.
    if mine.scheme != theirs.scheme or "segment" in spreading(mine.scheme).options:
        return False
    if (mine.auto, mine.objective, mine.count_bound) != (theirs.auto, theirs.objective, theirs.count_bound):
        return False
    return mine.auto or mine.nodes == theirs.nodes


def _is_settled(manifest: Manifest, entry: QueryEntry) -> bool:
    # Not while rows are taken over from elsewhere.
    spread, step = entry.nodes, manifest.step
    if spread is None:
        return False
    if step in (entry.since, spread.regrouped):
        return True
    return spread.since != step and (spread.alone != "" or spread.regrouped is not None)
