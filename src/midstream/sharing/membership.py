"""Which queries share: they enter a chain, leave it, or read something else of it. Pure.

A chain is relabelled, not rebuilt (Wang §7.3): a new window is a new cut, a query that leaves takes away its cut, and
no row moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from midstream.logical.query import Query, query_of
from midstream.model.errors import QueryError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.sharing import ALWAYS, Chain, Demand, SharedSource
from midstream.sharing.chains import new_chain_name, renamed, reworded
from midstream.sharing.coverage import coverage_of, extended, horizon, next_time, purged_to, visible_past
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import Shape, can_share, canonical_plan, own_plan, shape_of
from midstream.state.lineage import MOST_FILTERS


def enrol(
    manifest: Manifest, name: str, entry: QueryEntry, *, history: bool = True, chain: str | None = None
) -> Manifest:
    """Put a query into `chain`, into a chain with its family and plan, or into a new one.

    The entry's `sees`, `from_step` and `exact_from` say what it reads of the past; without `history` that is nothing
    from before this step. Where a source has no bit left for one more filter, the query runs by itself.
    """
    shape = shape_of(query_of(entry))
    names = {label: f"{entry.group} {base}" for label, base in shape.bases.items()}
    if any(_is_full(manifest, shape, label, source) for label, source in names.items()):
        return unshared(manifest, name, replace(entry, chain="", demands={}))
    coverages = {label: coverage_of(manifest, shape, label, names[label], history) for label in names}
    sources = {**manifest.shared_sources}
    for label, coverage in coverages.items():
        sources[names[label]] = extended(manifest, shape, label, names[label], coverage)
    past = visible_past(manifest, shape, coverages, history)
    notation = canonical_plan(query_of(entry), entry.plan)
    chain = chain or _chain_for(manifest, name, shape.family, entry.group, notation)
    chains = {**manifest.chains}
    if chain not in chains:
        chains[chain] = Chain(shape.family, entry.group, notation, shape.query.children, names, since=manifest.step)
    demands = {a: Demand(names[a], shape.texts[a], shape.sizes[a], shape.columns[a]) for a in names}
    entered = replace(
        entry,
        chain=chain,
        demands=demands,
        entered=manifest.step,
        sees=past.sees,
        from_step=past.from_step,
        exact_from=past.exact_from,
    )
    return replace(manifest, shared_sources=sources, chains=chains).with_query(name, entered)


def release(manifest: Manifest, name: str) -> Manifest:
    """Remove a query, with all that no other query reads."""
    gone = manifest.queries[name]
    queries = {k: v for k, v in manifest.queries.items() if k != name}
    if not gone.shares:
        return replace(manifest, queries=queries)
    sources = {**manifest.shared_sources}
    for demand in gone.demands.values():
        sources[demand.source] = replace(sources[demand.source], purged_to=purged_to(manifest, demand.source))
    left = settled(replace(manifest, queries=queries, shared_sources=sources), gone.demands.values())
    return renamed(left, name) if name in left.chains else left


def settled(manifest: Manifest, touched: Iterable[Demand]) -> Manifest:
    """Drop from sources and chains what no query reads any more; `touched` names what may be too much."""
    names = {demand.source for demand in touched}
    sizes: dict[tuple[str, str], int] = {}
    columns: dict[str, set[str]] = {}
    chains = set()
    for entry in manifest.queries.values():
        chains.add(entry.chain)
        for demand in entry.demands.values():
            if demand.source in names:
                key = (demand.source, demand.filter)
                sizes[key] = max(sizes.get(key, -1), demand.size)
                columns.setdefault(demand.source, set()).update(demand.columns)
    sources = dict[str, SharedSource]()
    for name, source in manifest.shared_sources.items():
        if name not in names:
            sources[name] = source
        elif name in columns:
            used = {text: (one, sizes[name, text]) for text, one in source.filters.items() if (name, text) in sizes}
            filters = {t: replace(f, size=size, rows_kept=min(f.rows_kept, size)) for t, (f, size) in used.items()}
            kept = {c: time for c, time in source.columns.items() if c in columns[name]}
            sources[name] = replace(source, filters=filters, columns=kept)
    kept_chains = {name: chain for name, chain in manifest.chains.items() if name in chains}
    return replace(manifest, shared_sources=sources, chains=kept_chains)


def change(manifest: Manifest, name: str, query: Query) -> Manifest:
    """Let a query of a chain read something else of it, from this step on.

    What it read before is still kept until the manifest is `settled`. Raises where the new text is of another join, or
    has other columns.
    """
    entry = manifest.queries[name]
    if not entry.shares:
        alone = "runs by itself" if entry.nodes is None else "is spread over nodes"
        raise QueryError(
            f"query {name!r} {alone}, so its text cannot change",
            place=f"query {name}",
            remedy="drop the query and add it again",
        )
    old = shape_of(query_of(entry))
    if not can_share(query) or shape_of(query).family != old.family:
        raise QueryError(
            f"the new text of query {name!r} cannot change the streams or the join conditions",
            place=f"query {name}",
            remedy="change only windows, filters and expressions of columns; otherwise drop the query and add it again",
        )
    new = shape_of(query)
    if _columns_of(new) != _columns_of(old):
        raise QueryError(
            f"the new text of query {name!r} cannot change the columns",
            place=f"query {name}",
            remedy="keep the names and types of the columns",
        )
    plan = own_plan(query, manifest.chains[entry.chain].plan)
    moving = reworded(entry.migrations, query_of(entry), query)
    reworded_entry = replace(entry, query=query, rejects=query.rejects, plan=plan, migrations=moving)
    changed = enrol(manifest, name, reworded_entry, chain=entry.chain)
    if not changed.queries[name].demands:
        raise QueryError(
            f"a source cannot have more than {MOST_FILTERS} filters", place=f"query {name}",
            remedy="drop a query first",
        )  # fmt: skip
    return changed


def unshared(manifest: Manifest, name: str, entry: QueryEntry) -> Manifest:
    """Add a query that runs by itself: it sees what comes from this step on."""
    query = query_of(entry)
    heard = any(next_time(manifest, s.stream) != ALWAYS for s in query.sources)
    alone = replace(
        entry,
        entered=manifest.step,
        sees="new" if heard else "all",
        from_step=manifest.step if heard else 0,
        exact_from=horizon(manifest, query),
        private=not scheme(manifest.sharing).shares,
    )
    free = renamed(manifest, name) if name in manifest.chains else manifest
    return free.with_query(name, alone)


def _columns_of(shape: Shape) -> list[tuple[str, object]]:
    return [(o.name, o.expression.type) for o in shape.query.outputs]


def _chain_for(manifest: Manifest, name: str, family: str, group: str, plan: str) -> str:
    for found, chain in manifest.chains.items():
        if (chain.family, chain.group, chain.plan) == (family, group, plan):
            return found
    return new_chain_name(manifest, name)


def _is_full(manifest: Manifest, shape: Shape, label: str, name: str) -> bool:
    source = manifest.shared_sources.get(name)
    return source is not None and shape.texts[label] not in source.filters and len(source.filters) >= MOST_FILTERS
