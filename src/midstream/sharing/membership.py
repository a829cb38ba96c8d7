"""Who shares what: queries join a chain, leave it, or want something else of it. Pure.

A chain is relabelled, not rebuilt (Wang §7.3): a new window is a new cut, a query that leaves takes away its cut, and
no row moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from midstream.language.parse import parsed
from midstream.model.errors import QueryError
from midstream.model.holding import ALWAYS, Chain, Holding, Wanted
from midstream.model.manifest import Manifest, QueryEntry
from midstream.sharing.chains import new_chain_name, renamed, reworded
from midstream.sharing.discovery import scheme
from midstream.sharing.reach import after, bound_of, horizon, reach_of, seen_of, taken_in
from midstream.sharing.shape import Shape, can_share, canonical_plan, own_plan, shape_in
from midstream.state.lineage import MOST_FILTERS


def enrol(
    manifest: Manifest, name: str, entry: QueryEntry, *, history: bool = True, chain: str | None = None
) -> Manifest:
    """The manifest with a query in a chain: one with the same family and plan, `chain`, or a new one.

    The entry's `sees` and `exact_from` tell what the query meets there; without `history` only rows that come from
    this step on. Where a source has no bit left for one more filter, the query runs by itself.
    """
    shape = shape_in(manifest, entry.sql)
    if any(_is_full(manifest, shape, label, f"{entry.group} {base}") for label, base in shape.bases.items()):
        return unshared(manifest, name, replace(entry, chain="", wants={}))
    names = {label: f"{entry.group} {base}" for label, base in shape.bases.items()}
    reaches = {label: reach_of(manifest, shape, label, names[label], history) for label in names}
    holdings = {**manifest.holdings}
    for label, reach in reaches.items():
        holdings[names[label]] = taken_in(manifest, shape, label, names[label], reach)
    sees, exact_from = seen_of(manifest, shape, reaches, history)
    chain = chain or _chain_for(manifest, shape, entry, name)
    notation = canonical_plan(manifest, entry.sql, entry.plan)
    chains = {**manifest.chains}
    if chain not in chains:
        chains[chain] = Chain(shape.family, entry.group, notation, shape.streams, names, founded=manifest.step)
    wants = {a: Wanted(names[a], shape.texts[a], shape.sizes[a], shape.reads[a]) for a in names}
    joined = replace(entry, chain=chain, wants=wants, joined=manifest.step, sees=sees, exact_from=exact_from)
    return replace(manifest, holdings=holdings, chains=chains).with_query(name, joined)


def release(manifest: Manifest, name: str) -> Manifest:
    """The manifest without a query; what nobody else wants is no longer held."""
    gone = manifest.queries[name]
    queries = {k: v for k, v in manifest.queries.items() if k != name}
    if not gone.shares:
        return replace(manifest, queries=queries)
    holdings = {**manifest.holdings}
    for wanted in gone.wants.values():
        holdings[wanted.holding] = replace(holdings[wanted.holding], bound=bound_of(manifest, wanted.holding))
    left = settled(replace(manifest, queries=queries, holdings=holdings), gone.wants.values())
    return renamed(left, name) if name in left.chains else left


def settled(manifest: Manifest, touched: Iterable[Wanted]) -> Manifest:
    """The manifest whose holdings and chains hold what its queries want, no more; `touched` is what may be too much."""
    names = {wanted.holding for wanted in touched}
    sizes: dict[tuple[str, str], int] = {}
    columns: dict[str, set[str]] = {}
    chains = set()
    for entry in manifest.queries.values():
        chains.add(entry.chain)
        for wanted in entry.wants.values():
            if wanted.holding in names:
                key = (wanted.holding, wanted.filter)
                sizes[key] = max(sizes.get(key, -1), wanted.size)
                columns.setdefault(wanted.holding, set()).update(wanted.reads)
    holdings = dict[str, Holding]()
    for name, holding in manifest.holdings.items():
        if name not in names:
            holdings[name] = holding
        elif name in columns:
            asked = {t: (h, sizes[name, t]) for t, h in holding.filters.items() if (name, t) in sizes}
            filters = {t: replace(h, size=size, counted=min(h.counted, size)) for t, (h, size) in asked.items()}
            kept = {c: time for c, time in holding.columns.items() if c in columns[name]}
            holdings[name] = replace(holding, filters=filters, columns=kept)
    kept_chains = {name: chain for name, chain in manifest.chains.items() if name in chains}
    return replace(manifest, holdings=holdings, chains=kept_chains)


def change(manifest: Manifest, name: str, sql: str) -> Manifest:
    """The manifest with a query of a chain asking for something else of it, from this step on.

    What it wanted before is still held until the manifest is `settled`. Raises where the new text is of another join,
    or has other columns.
    """
    entry = manifest.queries[name]
    query = parsed(manifest, sql)
    if not entry.shares:
        raise QueryError(
            f"query {name!r} runs by itself: what it keeps is of one window and filter",
            place=f"query {name}",
            remedy="drop it and add it anew",
        )
    old = shape_in(manifest, entry.sql)
    if not can_share(query) or shape_in(manifest, sql).family != old.family:
        raise QueryError(
            f"the new text of query {name!r} joins something else",
            place=f"query {name}",
            remedy="change windows, filters and what columns are made of; for another join drop it and add it anew",
        )
    new = shape_in(manifest, sql)
    if _columns_of(new) != _columns_of(old):
        raise QueryError(
            f"the new text of query {name!r} has other columns",
            place=f"query {name}",
            remedy="keep their names and types",
        )
    plan = own_plan(manifest, sql, manifest.chains[entry.chain].plan)
    moving = reworded(manifest, entry.migrations, entry.sql, sql)
    changed = enrol(manifest, name, replace(entry, sql=sql, plan=plan, migrations=moving), chain=entry.chain)
    if not changed.queries[name].wants:
        raise QueryError(
            f"a source has no room for one more filter: {MOST_FILTERS} are the most", place=f"query {name}",
            remedy="drop a query first",
        )  # fmt: skip
    return changed


def unshared(manifest: Manifest, name: str, entry: QueryEntry) -> Manifest:
    """The manifest with a query that runs by itself: it sees what comes from this step on."""
    query = parsed(manifest, entry.sql)
    spoke = any(after(manifest, s.stream) != ALWAYS for s in query.sources)
    joined = replace(
        entry,
        joined=manifest.step,
        sees="new" if spoke else "all",
        exact_from=horizon(manifest, query),
        apart=not scheme(manifest.sharing).shares,
    )
    free = renamed(manifest, name) if name in manifest.chains else manifest
    return free.with_query(name, joined)


def _columns_of(shape: Shape) -> list[tuple[str, object]]:
    return [(o.name, o.expression.type) for o in shape.query.outputs]


def _chain_for(manifest: Manifest, shape: Shape, entry: QueryEntry, name: str) -> str:
    notation = canonical_plan(manifest, entry.sql, entry.plan)
    for found, chain in manifest.chains.items():
        if (chain.family, chain.group, chain.plan) == (shape.family, entry.group, notation):
            return found
    return new_chain_name(manifest, name)


def _is_full(manifest: Manifest, shape: Shape, label: str, name: str) -> bool:
    holding = manifest.holdings.get(name)
    return holding is not None and shape.texts[label] not in holding.filters and len(holding.filters) >= MOST_FILTERS
