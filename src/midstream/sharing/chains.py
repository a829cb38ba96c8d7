"""Chains by name: which queries are in one, how one moves or splits, when two become one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from math import prod

from midstream.logical.query import Query, query_of
from midstream.model.errors import QueryError, StrategyError
from midstream.model.manifest import Manifest, MigrationRecord
from midstream.model.sharing import Chain
from midstream.sharing.coverage import lineage_of
from midstream.sharing.filter_partition import MOST_JOINS, count_partitions
from midstream.sharing.schemes.scheme_contract import scheme, schemes
from midstream.sharing.shape import canonical_plan, own_plan
from midstream.state.lineage import Lineage


def check_parts(manifest: Manifest, name: str) -> None:
    """Raise if the scheme would need too many joins for a chain that reads what a query reads."""
    if not scheme(manifest.sharing).partitions:
        return
    touched = {demand.source for demand in manifest.queries[name].demands.values()}
    chains = [chain for chain in manifest.chains.values() if touched & set(chain.sources.values())]
    joins = max(
        prod(count_partitions(_lineage(manifest, source, chain)) for source in chain.sources.values())
        for chain in chains
    )
    if joins > MOST_JOINS:
        raise QueryError(
            f"{manifest.sharing} would need {joins} joins for the filters on the sources of query {name!r}",
            place=f"query {name}",
            remedy=f"the limit is {MOST_JOINS}; use a scheme that needs a single join: {_single_join_schemes()}",
        )


def _lineage(manifest: Manifest, source: str, chain: Chain) -> Lineage:
    # The conditions of the filters are left out: their number is all that matters.
    demands = (demand for entry in manifest.queries.values() for demand in entry.demands.values())
    return lineage_of(manifest, source, chain, {one.filter: () for one in demands if one.source == source})


def check_whole(manifest: Manifest, name: str) -> None:
    """Raise if a query's chain runs as several joins: strategies move the state of one plan."""
    entry = manifest.queries[name]
    if not scheme(manifest.sharing).partitions or not entry.shares:
        return
    sources = [manifest.shared_sources[demand.source] for demand in entry.demands.values()]
    if any(any(source.filters) for source in sources):
        raise StrategyError(
            f"query {name!r} cannot change its plan, because {manifest.sharing} runs the query as several joins",
            place=f"query {name}",
            remedy=f"first reshare with a scheme that runs the query as one join: {_single_join_schemes()}",
        )


def _single_join_schemes() -> str:
    return ", ".join(name for name, found in schemes().items() if found.shares and not found.partitions)


def move(manifest: Manifest, name: str, plan: str, *, together: bool) -> tuple[Manifest, str]:
    """Put a query on its way to another plan; returns the manifest and the chain that goes there.

    `together` takes all queries of its chain along. Otherwise it splits from them, if there are others: into a chain of
    its own over the same base rows, with a copy of what it needs of the states above them; migrations under way stay
    with the others.
    """
    entry = manifest.queries[name]
    notation, chain = canonical_plan(query_of(entry), plan), manifest.chains[entry.chain]
    mates = members(manifest, entry.chain)
    if together or len(mates) == 1:
        chains = {**manifest.chains, entry.chain: replace(chain, plan=notation)}
        moved = {mate: own_plan(query_of(manifest.queries[mate]), notation) for mate in mates}
        queries = {k: replace(v, plan=moved[k]) if k in moved else v for k, v in manifest.queries.items()}
        return replace(manifest, chains=chains, queries=queries), entry.chain
    own_name = new_chain_name(manifest, name)
    own = replace(chain, plan=notation, since=manifest.step, split_from=chain.plan)
    left = replace(manifest, chains={**manifest.chains, own_name: own})
    return left.with_query(name, replace(entry, plan=plan, chain=own_name, migrations={})), own_name


def reworded(migrations: Mapping[str, MigrationRecord], query: Query, other: Query) -> dict[str, MigrationRecord]:
    """Rewrite the records of a query's migrations in the aliases of another text of the same join."""

    def own(plan: str) -> str:
        return own_plan(other, canonical_plan(query, plan))

    return {mark: replace(of, old=own(of.old), plan=own(of.plan)) for mark, of in migrations.items()}


def united(manifest: Manifest) -> Manifest:
    """Merge chains of one family that have come to one plan: their states are the same."""
    if len(manifest.chains) < 2:
        return manifest
    busy = {entry.chain for entry in manifest.queries.values() if entry.migrations}
    busy.update(*[state.moving for state in manifest.lane_states.values()])
    first: dict[tuple[str, str, str], str] = {}
    into: dict[str, str] = {}
    for name, chain in manifest.chains.items():
        if name not in busy:
            into[name] = first.setdefault((chain.family, chain.group, chain.plan), name)
    if all(name == other for name, other in into.items()):
        return manifest
    queries = {
        k: replace(v, chain=into[v.chain]) if into.get(v.chain, v.chain) != v.chain else v
        for k, v in manifest.queries.items()
    }
    kept = {name: chain for name, chain in manifest.chains.items() if into.get(name, name) == name}
    return replace(manifest, queries=queries, chains=kept)


def renamed(manifest: Manifest, name: str) -> Manifest:
    """Rename a chain that is named after a query which has ended, so that the name is free again."""
    given = free_name(manifest, name)
    chains = {given if k == name else k: v for k, v in manifest.chains.items()}
    chains[given] = replace(chains[given], former_name=name, renamed_in=manifest.step)
    queries = {k: replace(v, chain=given) if v.chain == name else v for k, v in manifest.queries.items()}
    return replace(manifest, chains=chains, queries=queries)


def new_chain_name(manifest: Manifest, name: str) -> str:
    """Choose a name for the chain that begins with a query: the query's, unless another chain has it."""
    return name if name not in manifest.chains else free_name(manifest, name)


def free_name(manifest: Manifest, name: str) -> str:
    """Find a name like this one that no chain, query or box of a lane has.

    >>> free_name(Manifest(), "q")
    'q.1'
    """
    taken = {*manifest.chains, *manifest.queries, *(n for s in manifest.lane_states.values() for n in s.boxes)}
    return next(n for number in count(1) if (n := f"{name}.{number}") not in taken)


def members(manifest: Manifest, chain: str) -> list[str]:
    """List the queries of a chain, in order of name."""
    return sorted(name for name, entry in manifest.queries.items() if entry.shares and entry.chain == chain)
