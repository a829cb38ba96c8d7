"""Nodes of a query within one process in a step: they take in the rows that are at home there, and are visited."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from midstream.model.counters import Counters
from midstream.model.ids import StateId
from midstream.model.manifest import ChunkRef, Manifest, StateListing
from midstream.model.node_spread import NodeSpread
from midstream.ring.columns import Copies, Words
from midstream.ring.joined_rows import JoinedRows
from midstream.ring.late_rows import NumberedBatches
from midstream.ring.logical_slices import queries
from midstream.ring.ring_node import NodeRows, RingNode
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.chunk_store import ChunkStore
from midstream.state.keys import Mask, stable_sort
from midstream.step.spreading.deployed import Deployed, ages
from midstream.step.spreading.listed import AtNodes, Groups, Keeping
from midstream.step.spreading.nodes_done import KeptChunks, NodeDone, NodesDone
from midstream.step.spreading.taken_over import Chunks, as_searched, kept_columns
from midstream.units.held import with_held
from midstream.units.query_unit import QueryUnit
from midstream.units.ring_unit import RingUnit


def listed(manifest: Manifest, unit: QueryUnit, label: str, nodes: Container[int] | None = None) -> list[ChunkRef]:
    """List the chunks of a source that are listed at these nodes, or at any, each once."""
    state = unit.binding.rows()[label].id
    lanes = (found for lane, found in manifest.lane_states.items()
             if lane.group == unit.group and (nodes is None or lane.number in nodes))  # fmt: skip
    listings = (lane.states.get(state, StateListing()) for lane in lanes)
    return list({ref.name: ref for listing in listings for ref in listing.chunks}.values())


def read(refs: Iterable[ChunkRef], manifest: Manifest, unit: QueryUnit, label: str, store: ChunkStore) -> Chunks:
    """Read the chunks of a source as they are searched."""
    spec = unit.binding.rows()[label]
    types = manifest.streams[spec.stream].columns
    return {ref.name: (ref, as_searched(unit, label, kept_columns(store.chunk(ref), spec, types))) for ref in refs}


@dataclass(frozen=True)
class Partition:
    """Some nodes of a query, by their `numbers`, in a step: all of them in one process, or those of one task.

    `old` has of each source the chunks that may have rows at home at them, `new` the step's rows that have.
    """

    deployed: Deployed
    numbers: Sequence[int]
    old: Mapping[str, Chunks]
    new: Mapping[str, Groups]

    def nodes(self) -> dict[int, RingNode]:
        """Make the nodes, ready to be visited."""
        here = set(self.numbers)
        batches = {
            label: NumberedBatches(found)
            for label, chunks in self._at.items()
            if (
                found := [
                    *(self._batch(at) for at in chunks if not here.isdisjoint(at)),
                    *(rows.batch for at, rows in self.new.get(label, ()) if not here.isdisjoint(at)),
                ]
            )
        }
        return {
            number: RingNode(
                number,
                {label: [at[number].rows for at in chunks if number in at] for label, chunks in self._at.items()},
                {label: [NodeRows(rows) for at, rows in groups if number in at] for label, groups in self.new.items()},
                batches,
                self.deployed.shared,
            )
            for number in self.numbers
        }

    def kept(self, store: ChunkStore, step: int, before: int | None) -> NodesDone:
        """List what the nodes keep after the step. `before` is the moment of the step before where rows move with it.

        The first of the nodes that have a chunk lists it.
        """
        specs, states = self.deployed.unit.binding.rows(), dict[StateId, dict[int, int]]()
        kept, arrived, moved = list[KeptChunks](), dict[StateId, int](), 0
        for label, old in self._at.items():
            state, new = specs[label].id, self.new.get(label, ())
            name = f"{self.deployed.lane(0)}/{step:08d}-{state}"
            own_new = [(nodes, rows) for nodes, rows in new if nodes[0] in self.numbers]
            keeping = Keeping(store, name, self.deployed.homes(label))
            found = keeping.kept((at for at in old if min(at) in self.numbers), own_new)
            kept += [KeptChunks(state, nodes, chunks) for nodes, chunks in found]
            come = {n: sum(len(rows) for nodes, rows in new if n in nodes) for n in self.numbers}
            states[state] = {n: come[n] + sum(at[n].live for at in old if n in at) for n in self.numbers}
            arrived[state] = sum(come.values())
            if before is not None:
                moved += sum(self._moved(label, at, before) for at in old)
        living = {n: {state: found[n] for state, found in states.items()} for n in self.numbers}
        nodes = tuple(NodeDone(n, living=living[n]) for n in self.numbers)
        return NodesDone(nodes, tuple(kept), arrived=arrived, moved=moved)

    @staticmethod
    def _batch(at: AtNodes) -> pa.RecordBatch:
        return next(iter(at.values())).chunk.batch

    @cached_property
    def _at(self) -> dict[str, list[AtNodes]]:
        return {label: self.deployed.homes(label).at_nodes(chunks.values()) for label, chunks in self.old.items()}

    def _moved(self, label: str, at: AtNodes, before: int) -> int:
        # Rows that they were not at before the step.
        was = replace(self.deployed.homes(label), deployment=replace(self.deployed.deployment, moments=(before,)))
        found = 0
        for node, one in at.items():
            if node in self.numbers:
                batch = one.chunk.batch
                now = np.ones(batch.num_rows, np.bool_) if one.mask is None else one.mask
                found += int((now & ~_marked(was.of(batch), node, batch.num_rows)).sum())
        return found


def visited(node: RingNode) -> NodeDone:
    """Return what visits to a node cost."""
    counters = Counters(
        comparisons=node.comparisons, predicates=node.predicates, rows_out=node.rows_out, hops=node.visits
    )
    return NodeDone(node.number, counters)


def moment_before(deployed: Deployed, spread: NodeSpread, step: int) -> int | None:
    """Return the moment of the step before, by which rows have moved since; None where none do."""
    return (spread.moment or 0) if ages(spread) and spread.since != step else None


def answers_of(unit: QueryUnit, results: JoinedRows, held: Sequence[pa.RecordBatch] = ()) -> dict[str, Answer]:
    """Make the answer of each query from results, in order of time, with rows that were held back.

    Where queries share the nodes, a result goes to those that its vector T names (Wang §20.1).
    """
    order, ascending = stable_sort(results.newest)
    newest = ascending.view(np.int64)
    if not isinstance(unit, RingUnit):
        return {unit.name: with_held(_shown(unit.result_operator, results, order, newest), held)}
    served = queries(unit.shared.served(results), len(unit.members))[order]
    return {
        member.name: _shown(member.result_operator, results, order[served[:, place]], newest[served[:, place]])
        for place, member in enumerate(unit.members)
    }


def _shown(result_operator: ResultOperator, results: JoinedRows, at: Words, newest: Words) -> Answer:
    # Columns that the query does not show are not copied.
    shown = results.take(at)
    kept, dead = result_operator.judged(with_time(shown.read, newest), newest)
    if kept is not None:
        shown, newest = shown.take(np.flatnonzero(kept)), newest[kept]
    columns = result_operator.values(with_time(shown.read, newest), len(newest))
    return replace(result_operator.answer(columns, newest), dead=dead)


def _marked(copies: Copies, node: int, rows: int) -> Mask:
    found = np.zeros(rows, np.bool_)
    found[copies.row[copies.node == node]] = True
    return found
