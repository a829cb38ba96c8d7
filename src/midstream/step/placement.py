"""Checks that each kept row lies where later rows look for it: in its lane, or at its nodes.

In: a manifest and the store of its chunks. Out: what lies elsewhere. Tests check every step so, `midstream doctor`
every manifest that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from midstream.model.ids import LaneId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.runtime.checks import are_on, require
from midstream.runtime.lane_key import is_single
from midstream.runtime.watermark import BEGINNING, watermarks
from midstream.state.chunk_store import ChunkStore
from midstream.step.plan_step import lanes_of
from midstream.step.rescaled_state import dealt_states
from midstream.step.spreading.deployed import Deployed, as_before
from midstream.step.spreading.partition import read
from midstream.units.program import Program, compile_program
from midstream.units.query_unit import QueryUnit


@dataclass(frozen=True)
class Misplaced:
    """Rows of a chunk that lie in a lane, or at a node, where no later row looks for them."""

    lane: LaneId
    queries: tuple[str, ...]
    stream: str
    chunk: str
    rows: int

    def __str__(self) -> str:
        names = ", ".join(self.queries)
        return (
            f"{self.rows} rows of {self.stream} that are kept for {names} lie in {self.lane}, where nothing meets them"
        )


def validate(before: Manifest, after: Manifest, store: ChunkStore) -> None:
    """Raise a `ContractError` if a step has put a row into the wrong lane; does nothing unless checks are on."""
    if are_on():
        for found in misplaced(after, store, known=before):
            require(False, f"step {after.step}: {found}, in chunk {found.chunk}")


def misplaced(manifest: Manifest, store: ChunkStore, known: Manifest | None = None) -> Iterator[Misplaced]:
    """Find the rows that lie in a wrong lane. Chunks are passed over that a lane has in the manifest `known` too."""
    same = known is not None and known.shares == manifest.shares and known.queries.keys() == manifest.queries.keys()
    former = known.lane_states if known is not None and same else {}
    for group in sorted({lane.group for lane in manifest.lane_states}):
        program = None if is_single(group) else compile_program(manifest, group, {})
        if program is None or not program.units:
            continue
        names = tuple(name for unit in program.units for name in unit.queries)
        if any(manifest.queries[name].nodes is not None for name in names):
            yield from _at_nodes(manifest, group, program, store)
        else:
            lanes = lanes_of(group, manifest.shares)
            for lane, state in manifest.lane_states.items():
                if lane.group == group:
                    yield from _in_lane(program, lane, lanes, state, former.get(lane, LaneState()), store)


def _in_lane(
    program: Program, lane: LaneId, lanes: int, state: LaneState, former: LaneState, store: ChunkStore
) -> Iterator[Misplaced]:
    dealt = dealt_states(program)
    for id, listing in state.states.items():
        own, old = dealt.get(id), former.states.get(id, StateListing())
        for ref in listing.chunks:
            if own is None or any(ref.name == one.name for one in old.chunks):
                continue
            batch = store.get(ref)
            wrong = own.lanes_of(batch, lanes) != lane.number
            if wrong.any():
                yield Misplaced(lane, own.queries, own.stream, ref.name, int(wrong.sum()))


def _at_nodes(manifest: Manifest, group: str, program: Program, store: ChunkStore) -> Iterator[Misplaced]:
    # Every node where a row is at home must list its chunk.
    (unit,) = program.units
    spread = next(nodes for name in unit.queries if (nodes := manifest.queries[name].nodes) is not None)
    assert isinstance(unit, QueryUnit)
    marks = watermarks(manifest.streams, manifest.progress)
    bound = max(min(marks[stream] for stream in unit.streams), BEGINNING + 1)
    deployed = Deployed(unit, as_before(spread), manifest.seed, bound)
    lanes = {lane: state for lane, state in manifest.lane_states.items() if lane.group == group}
    for label, spec in unit.binding.rows().items():
        listing: dict[str, set[int]] = {}
        for lane, state in lanes.items():
            for ref in state.states.get(spec.id, StateListing()).chunks:
                listing.setdefault(ref.name, set()).add(lane.number)
        refs = {ref.name: ref for state in lanes.values() for ref in state.states.get(spec.id, StateListing()).chunks}
        for name, (ref, chunk) in read(refs.values(), manifest, unit, label, store).items():
            at = deployed.homes(label).listed(ref, chunk)
            for node in sorted(at.keys() - listing[name]):
                yield Misplaced(LaneId(group, min(listing[name])), unit.queries, spec.stream, name, at[node].live)
