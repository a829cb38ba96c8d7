"""Who shares what: queries join a chain, leave it, or want something else of it. Pure.

A chain is relabelled, not rebuilt (Wang §7.3): a new window is a new cut, a query that leaves takes away its cut, and
no row moves. What cannot be relabelled is what was never kept. The dissertation leaves that case out; here a query
whose window or filter reaches beyond what is held answers from the rows that are, and says from when it is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from midstream.language.query import Query
from midstream.model.errors import QueryError, StrategyError
from midstream.model.holding import ALWAYS, Chain, Held, Holding, Wanted
from midstream.model.manifest import Manifest, QueryEntry
from midstream.sharing.partition import MOST_JOINS
from midstream.sharing.shape import Shape, can_share
from midstream.state.lineage import MOST_FILTERS
from midstream.step.clock import watermarks
from midstream.step.program import canonical_plan, own_plan, parsed, shape_in


@dataclass(frozen=True)
class Reach:
    """How far back what is held of a source serves a query.

    `start` is the event time from which on every row it wants is there, None where only rows to come are; `held` what
    the filter's entry becomes.
    """

    start: int | None
    held: Held


def enrol(
    manifest: Manifest, name: str, entry: QueryEntry, *, history: bool = True, chain: str | None = None
) -> Manifest:
    """The manifest with a query in a chain: one with the same family and plan, `chain`, or a new one.

    The entry's `sees` and `exact_from` tell what the query meets there; without `history` only rows that come from
    this step on. Where a source has no bit left for one more filter, the query runs by itself.
    """
    shape = shape_in(manifest, entry.sql)
    if any(_is_full(manifest, shape, label, f"{entry.group} {base}") for label, base in shape.bases.items()):
        return unshared(manifest, name, entry)
    names = {label: f"{entry.group} {base}" for label, base in shape.bases.items()}
    reaches = {label: _reach(manifest, shape, label, names[label], history) for label in names}
    holdings = {**manifest.holdings}
    for label, reach in reaches.items():
        holdings[names[label]] = _taken_in(manifest, shape, label, names[label], reach)
    sees, exact_from = _sees(manifest, shape, reaches, history)
    chain = chain or _chain_for(manifest, shape, entry, name)
    notation = canonical_plan(manifest, entry.sql, entry.plan)
    chains = {**manifest.chains}
    if chain not in chains:
        chains[chain] = Chain(shape.family, entry.group, notation, shape.streams, names, founded=manifest.step)
    wants = {a: Wanted(names[a], shape.texts[a], shape.sizes[a], shape.reads[a]) for a in names}
    joined = replace(entry, chain=chain, wants=wants, joined=manifest.step, sees=sees, exact_from=exact_from)
    return replace(manifest, holdings=holdings, chains=chains).with_query(name, joined)


def check_parts(manifest: Manifest, name: str) -> None:
    """Raise where push-down would need too many joins for a chain that reads what a query reads."""
    if manifest.sharing != "push_down":
        return
    touched = {wanted.holding for wanted in manifest.queries[name].wants.values()}
    chains = [chain for chain in manifest.chains.values() if touched & set(chain.holdings.values())]
    joins = max(
        prod(1 << _closed(manifest.holdings[holding]) for holding in chain.holdings.values()) for chain in chains
    )
    if joins > MOST_JOINS:
        raise QueryError(
            f"push_down would need {joins} joins for the filters on the sources of query {name!r}",
            place=f"query {name}",
            remedy=f"{MOST_JOINS} are the most: share by mem_opt or cpu_opt, which need one",
        )


def _closed(holding: Holding) -> int:
    """How many filters of a source some of its rows pass and some do not."""
    return sum(bool(text) or held.blind for text, held in holding.filters.items())


def check_whole(manifest: Manifest, name: str) -> None:
    """Raise where the joins of a query's chain are in parts: strategies move the state of one plan."""
    entry = manifest.queries[name]
    if manifest.sharing != "push_down" or not entry.shares:
        return
    held = [manifest.holdings[wanted.holding] for wanted in entry.wants.values()]
    if any(any(holding.filters) for holding in held):
        raise StrategyError(
            f"push_down runs query {name!r} as several joins, one for each part of its streams",
            place=f"query {name}",
            remedy="share by mem_opt first (reshare), which runs it as one",
        )


def release(manifest: Manifest, name: str) -> Manifest:
    """The manifest without a query; what nobody else wants is no longer held."""
    gone = manifest.queries[name]
    queries = {k: v for k, v in manifest.queries.items() if k != name}
    if not gone.shares:
        return replace(manifest, queries=queries)
    holdings = {**manifest.holdings}
    for wanted in gone.wants.values():
        holdings[wanted.holding] = replace(holdings[wanted.holding], bound=_bound(manifest, wanted.holding))
    left = settled(replace(manifest, queries=queries, holdings=holdings), gone.wants.values())
    return renamed(left, name) if name in left.chains else left


def renamed(manifest: Manifest, name: str) -> Manifest:
    """The manifest whose chain gives back the name of a query that is gone: another query may bear it."""
    given = free_name(manifest, name)
    chains = {given if k == name else k: v for k, v in manifest.chains.items()}
    chains[given] = replace(chains[given], formerly=name, renamed=manifest.step)
    queries = {k: replace(v, chain=given) if v.chain == name else v for k, v in manifest.queries.items()}
    return replace(manifest, chains=chains, queries=queries)


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
            filters = {t: replace(h, size=sizes[name, t]) for t, h in holding.filters.items() if (name, t) in sizes}
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
    changed = enrol(manifest, name, replace(entry, sql=sql, plan=plan), chain=entry.chain)
    if not changed.queries[name].wants:
        raise QueryError(
            f"a source has no room for one more filter: {MOST_FILTERS} are the most", place=f"query {name}",
            remedy="drop a query first",
        )  # fmt: skip
    return changed


def move(manifest: Manifest, name: str, plan: str, *, together: bool) -> tuple[Manifest, str]:
    """The manifest with a query on its way to another plan, and the chain that goes there.

    `together` takes all queries of its chain along. Otherwise it leaves them, if there are others: it founds a chain of
    its own over the same base rows, and takes with it what it wants of the states above them.
    """
    entry = manifest.queries[name]
    notation, chain = canonical_plan(manifest, entry.sql, plan), manifest.chains[entry.chain]
    mates = members(manifest, entry.chain)
    if together or len(mates) == 1:
        chains = {**manifest.chains, entry.chain: replace(chain, plan=notation)}
        moved = {mate: own_plan(manifest, manifest.queries[mate].sql, notation) for mate in mates}
        queries = {k: replace(v, plan=moved[k]) if k in moved else v for k, v in manifest.queries.items()}
        return replace(manifest, chains=chains, queries=queries), entry.chain
    founded = new_chain_name(manifest, name)
    own = replace(chain, plan=notation, founded=manifest.step, origin=chain.plan)
    left = replace(manifest, chains={**manifest.chains, founded: own})
    return left.with_query(name, replace(entry, plan=plan, chain=founded)), founded


def united(manifest: Manifest) -> Manifest:
    """The manifest with chains of one family that have come to one plan made one: theirs were the same states."""
    busy = {entry.chain for entry in manifest.queries.values() if entry.migrations}
    busy |= {n for state in manifest.lane_states.values() for n, box in state.boxes.items() if box["box"] != "plan"}
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


def unshared(manifest: Manifest, name: str, entry: QueryEntry) -> Manifest:
    """The manifest with a query that runs by itself: it sees what comes from this step on."""
    query = parsed(manifest, entry.sql)
    spoke = any(_after(manifest, s.stream) != ALWAYS for s in query.sources)
    joined = replace(
        entry,
        joined=manifest.step,
        sees="new" if spoke else "all",
        exact_from=_horizon(manifest, query),
        apart=manifest.sharing == "off",
    )
    free = renamed(manifest, name) if name in manifest.chains else manifest
    return free.with_query(name, joined)


def _columns_of(shape: Shape) -> list[tuple[str, object]]:
    return [(o.name, o.expression.type) for o in shape.query.outputs]


def new_chain_name(manifest: Manifest, name: str) -> str:
    """A name for the chain that a query founds: its own, unless a chain bears it that another query founded."""
    return name if name not in manifest.chains else free_name(manifest, name)


def free_name(manifest: Manifest, name: str) -> str:
    """A name like this one that no chain, query or box of a lane bears.

    >>> free_name(Manifest(), "q")
    'q.1'
    """
    taken = {*manifest.chains, *manifest.queries, *(n for s in manifest.lane_states.values() for n in s.boxes)}
    return next(n for number in count(1) if (n := f"{name}.{number}") not in taken)


def members(manifest: Manifest, chain: str) -> list[str]:
    """The queries of a chain, in order of name."""
    return sorted(name for name, entry in manifest.queries.items() if entry.shares and entry.chain == chain)


def _chain_for(manifest: Manifest, shape: Shape, entry: QueryEntry, name: str) -> str:
    notation = canonical_plan(manifest, entry.sql, entry.plan)
    for found, chain in manifest.chains.items():
        if (chain.family, chain.group, chain.plan) == (shape.family, entry.group, notation):
            return found
    return new_chain_name(manifest, name)


def _reach(manifest: Manifest, shape: Shape, label: str, name: str, history: bool) -> Reach:
    """What of a source's held rows a query can begin with."""
    stream, text, size = shape.query.source(label).stream, shape.texts[label], shape.sizes[label]
    fresh = _after(manifest, stream)
    # Rows yet to come may be older than others that have, but not than this.
    mark = watermarks(manifest.streams, manifest.progress)[stream]
    holding = manifest.holdings.get(name, Holding(stream, shape.kind(label), manifest.step))
    bound, parts = _bound(manifest, name), tuple(sorted(c.text() for c in shape.filters[label]))
    columns = [holding.columns.get(c, fresh) for c in shape.reads[label]]
    best: int | None = None
    for held in holding.filters.values():
        if set(held.parts) <= set(parts):
            start = max((_start(held, bound, holding.kind, size), *columns))
            best = start if best is None else min(best, start)
    known = holding.filters.get(text)
    if known is None:
        blind = best is None or not history
        complete = fresh if best is None or blind else best
        used = {held.bit for held in holding.filters.values()}
        bit = next(bit for bit in range(MOST_FILTERS) if bit not in used)
        floor = ALWAYS if blind else min(complete, mark)
        return Reach(best if history else None, Held(bit, parts, size, manifest.step, complete, floor, blind))
    grown = known
    if history and best is not None and best < max((_start(known, bound, holding.kind, size), *columns)):
        # Other filters hold what this one has not been asked for yet: their rows are told now.
        grown = Held(known.bit, parts, known.size, manifest.step, best, min(best, mark))
    elif size > known.size and holding.kind == "range":
        young = _less(bound, known.size)
        grown = replace(known, complete=max(known.complete, young), floor=max(known.floor, young))
    elif size > known.size:
        grown = replace(known, complete=max(known.complete, fresh))
    return Reach(best if history else None, replace(grown, size=max(size, known.size)))


def _start(held: Held, bound: int, kind: str, size: int) -> int:
    """The event time from which on all rows of a filter are held."""
    if kind == "rows":
        return held.complete if size <= held.size else ALWAYS + 1
    return max(held.complete, _less(bound, held.size))


def _taken_in(manifest: Manifest, shape: Shape, label: str, name: str, reach: Reach) -> Holding:
    stream = shape.query.source(label).stream
    holding = manifest.holdings.get(name, Holding(stream, shape.kind(label), manifest.step))
    fresh = _after(manifest, stream)
    columns = {**dict.fromkeys(shape.reads[label], fresh), **holding.columns}
    filters = {**holding.filters, shape.texts[label]: reach.held}
    return replace(holding, filters=filters, columns=columns, bound=_bound(manifest, name))


def _sees(
    manifest: Manifest, shape: Shape, reaches: Mapping[str, Reach], history: bool
) -> tuple[str | int, int | None]:
    """What a query sees of the past, and the event time from which on that makes no difference."""
    if all(_after(manifest, stream) == ALWAYS for stream in shape.streams):
        return "all", None
    marks = watermarks(manifest.streams, manifest.progress)
    own = min(marks[stream] for stream in shape.streams)
    starts = [reach.start for reach in reaches.values()]
    if history and None not in starts:
        far = [
            s for label, s in zip(reaches, starts, strict=True) if s is not None and not _enough(shape, label, s, own)
        ]
        if not far:
            return "all", None
        if all(shape.kind(label) == "range" for label in reaches):
            return max(far), max(far) + max(shape.sizes.values())
    return "new", _horizon(manifest, shape.query)


def _horizon(manifest: Manifest, query: Query) -> int | None:
    """The event time from which on no row that has come so far is in a window; None where windows count rows."""
    if any(s.window is None or s.window.kind == "rows" for s in query.sources):
        return None
    spoke = [s for s in query.sources if _after(manifest, s.stream) != ALWAYS]
    return max((_after(manifest, s.stream) + s.window.size for s in spoke if s.window is not None), default=None)


def _enough(shape: Shape, label: str, start: int, own: int) -> bool:
    if start == ALWAYS:
        return True
    return shape.kind(label) == "range" and start <= _less(own, shape.sizes[label])


def _bound(manifest: Manifest, name: str) -> int:
    """The event time by which rows of a holding that had ended may be gone, for whoever has read it so far."""
    marks = watermarks(manifest.streams, manifest.progress)
    readers = [chain for chain in manifest.chains.values() if name in chain.holdings.values()]
    now = min((min(marks[stream] for stream in chain.streams) for chain in readers), default=ALWAYS)
    return max(now, manifest.holdings[name].bound) if name in manifest.holdings else now


def _after(manifest: Manifest, stream: str) -> int:
    """The event time after every row that a stream has brought."""
    progress = manifest.progress.get(stream)
    return ALWAYS if progress is None or progress.greatest is None else progress.greatest + 1


def _less(time: int, size: int) -> int:
    return ALWAYS if time <= ALWAYS + size else time - size


def _is_full(manifest: Manifest, shape: Shape, label: str, name: str) -> bool:
    holding = manifest.holdings.get(name)
    return holding is not None and shape.texts[label] not in holding.filters and len(holding.filters) >= MOST_FILTERS
