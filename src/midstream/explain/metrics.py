"""Counters of the engine and of each query, and how large its state is now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from midstream.explain.running import running_boxes, state_ids
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.step.chain_unit import ChainUnit
from midstream.step.conclude import state_bytes, state_rows
from midstream.step.program import compile_program
from midstream.step.unit import Unit


def metrics(manifest: Manifest) -> dict[str, Any]:
    """The engine's and each query's counters, and the size of the state now.

    The queries of a chain stand on the same states, which are looked at once.
    """
    held = {unit: _sizes(manifest, found) for unit, found in _units(manifest).items()}
    queries = {}
    for name, entry in manifest.queries.items():
        rows, bytes_ = held[entry.group, entry.unit(name), entry.shares]
        queries[name] = _counters(replace(entry.counters, state_rows=rows, state_bytes=bytes_))
    whole = replace(manifest.totals, state_rows=state_rows(manifest), state_bytes=state_bytes(manifest))
    return {**_counters(whole), "queries": queries}


def chain_states(manifest: Manifest) -> dict[str, int]:
    """The rows and combinations alive in each chain's states; rows that chains share count in each."""
    found = _units(manifest)
    return {
        name: _sizes(manifest, found[chain.group, name, True])[0]
        for name, chain in manifest.chains.items()
        if (chain.group, name, True) in found
    }


def _units(manifest: Manifest) -> dict[tuple[str, str, bool], Unit]:
    """What runs the queries, each once: by group, name, and whether it is a chain."""
    groups = {entry.group for entry in manifest.queries.values()}
    programs = [compile_program(manifest, group, {}) for group in sorted(groups)]
    return {(u.group, u.name, isinstance(u, ChainUnit)): u for program in programs for u in program.units}


def _sizes(manifest: Manifest, unit: Unit) -> tuple[int, int]:
    """The living rows and the bytes of the states that a unit stands on."""
    wanted = state_ids(unit, running_boxes(manifest, unit))
    own = {
        lane: replace(state, states={k: v for k, v in state.states.items() if k in wanted})
        for lane, state in manifest.lane_states.items()
        if lane.rpartition(".")[0] == unit.group
    }
    part = replace(manifest, lane_states=own)
    return state_rows(part), state_bytes(part)


def _counters(counters: Counters) -> dict[str, Any]:
    return dict(vars(counters))
