"""Where chains are cut: slices are split and merged before a step, as windows and statistics ask for (Wang §7.3). Pure.

A cut only says in which slice a chunk is listed from now on; no row moves, and nothing stops.
"""

from __future__ import annotations

from dataclasses import replace

from midstream.model.counters import Counters, operator_name
from midstream.model.events import ChainChanged, Event
from midstream.model.holding import Chain
from midstream.model.manifest import Manifest
from midstream.sharing.costs.chain import ChainLoad
from midstream.sharing.discovery import scheme
from midstream.sharing.schemes.base import Figures
from midstream.sharing.unit_costs import MEASURED

STEPS_BETWEEN, MANY = 8, 100
"""Steps after which the statistics are looked at again; as many more for each so many queries."""


def recut(manifest: Manifest, events: list[Event], *, changed: bool) -> Manifest:
    """The manifest with each chain cut as its scheme wants; `changed` says that queries have come, gone or changed."""
    # Weighing N windows takes N squared, so of many it is done less often.
    between = STEPS_BETWEEN * (1 + len(manifest.queries) // MANY)
    if not manifest.chains or not (changed or manifest.step % between == 0):
        return manifest
    chosen, chains = scheme(manifest.sharing), {**manifest.chains}
    windows: dict[str, set[int]] = {name: set() for name in chains}
    queries = dict.fromkeys(chains, 0)
    for entry in manifest.queries.values():
        if entry.shares:
            windows[entry.chain].update(wanted.size for wanted in entry.wants.values())
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
            chains[name] = replace(chain, cuts=cuts)
    return replace(manifest, chains=chains)


def figures(manifest: Manifest, name: str, windows: list[int]) -> Figures | None:
    """What has flowed through a chain, for a microsecond of event time; None while nothing has."""
    chain = manifest.chains[name]
    rates = [_rate(manifest, chain, label) for label in chain.holdings]
    steps = manifest.step - max(chain.founded, chain.renamed)  # Its counters go by its name.
    found = manifest.operators.get(operator_name(f"{chain.group}.", f"union {name}"), Counters()).rows_in
    arrived = [manifest.progress[stream].rows for stream in chain.streams if stream in manifest.progress]
    if steps < 1 or not found or not all(rates) or not all(arrived):
        return None
    # How long a step is, by the stream that brings the most rows a step.
    lasts = max(arrived) / max(rates) / max(manifest.step, 1)
    one, other = rates[0], rates[-1]
    selectivity = found / steps / lasts / (2 * one * other * windows[-1])
    load = ChainLoad(tuple(map(float, windows)), one, other, selectivity)
    return Figures(load, replace(MEASURED, boundary=MEASURED.boundary / lasts))


def _rate(manifest: Manifest, chain: Chain, label: str) -> float:
    """The rows of a source for a microsecond, by what is alive of them."""
    holding = manifest.holdings[chain.holdings[label]]
    widest = max(held.size for held in holding.filters.values())
    live = 0
    for lane, state in manifest.lane_states.items():
        if lane.rpartition(".")[0] == chain.group:
            live += sum(s.live for i, s in state.states.items() if i.startswith(f"{label}.") and i.endswith(".rows"))
    return live / widest if widest else 0.0


def _is_timed(manifest: Manifest, chain: Chain) -> bool:
    return all(manifest.holdings[holding].kind == "range" for holding in chain.holdings.values())
