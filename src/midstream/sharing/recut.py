"""Where chains are cut: slices are split and merged before a step, as windows and statistics ask for (Wang §7.3). Pure.

A cut only says in which slice a chunk is listed from now on; no row moves, and nothing stops.
"""

from __future__ import annotations

from dataclasses import replace

from midstream.model.counters import Counters
from midstream.model.events import ChainChanged, Event
from midstream.model.ids import CounterKey, OperatorId, StateKind
from midstream.model.manifest import Manifest
from midstream.model.sharing import Chain
from midstream.sharing.chain_cost import ChainLoad, UnitCosts
from midstream.sharing.schemes.scheme_contract import Figures, scheme

STEPS_BETWEEN, MANY = 8, 100
"""Steps after which the statistics are looked at again; as many more for each so many queries."""

MEASURED = UnitCosts(probe=0.0, purge=20e-9, route=58e-9, filter=0.0, union=0.0, operator=0.0, boundary=90e-6)
"""What the operations of a chain cost in this engine, in seconds; only their proportions matter to where it is cut.

Measured by `python -m benchmarks.sharing.calibrate`, which prints this line again for the machine it runs on. Probing,
filters and unions cost the same wherever the cuts are: in sets they are done once for the whole chain.
"""


def recut(manifest: Manifest, events: list[Event], *, changed: bool) -> Manifest:
    """Cut each chain as the scheme decides; `changed`: queries were added, dropped or changed."""
    # Weighing N windows takes N squared, so of many it is done less often.
    between = STEPS_BETWEEN * (1 + len(manifest.queries) // MANY)
    if not manifest.chains or not (changed or manifest.step % between == 0):
        return manifest
    chosen, chains, others = scheme(manifest.sharing), {**manifest.chains}, False
    windows: dict[str, set[int]] = {name: set() for name in chains}
    queries = dict.fromkeys(chains, 0)
    for entry in manifest.queries.values():
        if entry.shares:
            windows[entry.chain].update(demand.size for demand in entry.demands.values())
            queries[entry.chain] += 1
    for name, chain in manifest.chains.items():
        sizes = sorted(size for size in windows[name] if size > 0)
        if not _is_timed(manifest, chain) or len(sizes) < 2:
            cuts: tuple[int, ...] = ()
        else:
            cuts = chosen.cuts(sizes, figures(manifest, name, sizes), chain.cuts)
        cuts = cuts if len(cuts) > 1 else ()
        if cuts != chain.cuts:
            why = "queries" if changed else "statistics"
            events.append(ChainChanged(manifest.step, name, cuts, chain.cuts, why, queries[name]))
            chains[name], others = replace(chain, cuts=cuts), True
    return replace(manifest, chains=chains) if others else manifest


def figures(manifest: Manifest, name: str, windows: list[int]) -> Figures | None:
    """Measure what has flowed through a chain per microsecond of event time; None while nothing has."""
    chain = manifest.chains[name]
    rates = [_rate(manifest, chain, label) for label in chain.sources]
    steps = manifest.step - max(chain.since, chain.renamed_in)  # Its counters go by its name.
    found = manifest.operators.get(CounterKey(chain.group, OperatorId("union", name)), Counters()).rows_in
    arrived = [manifest.progress[stream].rows for stream in chain.streams if stream in manifest.progress]
    if steps < 1 or not found or not all(rates) or not all(arrived):
        return None
    # How long a step is, by the stream that brings the most rows a step.
    lasts = max(arrived) / max(rates) / max(manifest.step, 1)
    one, other = rates[0], rates[-1]
    selectivity = found / steps / lasts / (2 * one * other * windows[-1])
    load = ChainLoad(tuple(map(float, windows)), one, other, selectivity)
    return Figures(load, replace(MEASURED, boundary=MEASURED.boundary / lasts), tuple(rates[1:-1]))


def _rate(manifest: Manifest, chain: Chain, label: str) -> float:
    # Rows a microsecond, by what is alive of the source.
    source = manifest.shared_sources[chain.sources[label]]
    widest = max(one.size for one in source.filters.values())
    live = 0
    for lane, state in manifest.lane_states.items():
        if lane.group == chain.group:
            live += sum(s.live for i, s in state.states.items() if i.owner == label and i.kind is StateKind.ROWS)
    return live / widest if widest else 0.0


def _is_timed(manifest: Manifest, chain: Chain) -> bool:
    return all(manifest.shared_sources[source].kind == "range" for source in chain.sources.values())
