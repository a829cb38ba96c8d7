"""The chunks of a source as they are listed at nodes: where its rows are at home, which of them live, what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.model.manifest import ChunkRef
from midstream.model.window import EVENT_TIME
from midstream.ring.columns import Copies, Words, present
from midstream.ring.deployment import Deployment
from midstream.ring.joined_rows import Keys, stream_rows, times
from midstream.ring.ring_node import NodeRows
from midstream.ring.shared_queries import SharedQueries, unmarked
from midstream.ring.spreading import Spreading
from midstream.state.chunk_store import Chunk, ChunkStore, store_chunk
from midstream.state.compaction import is_sparse, rows_to_merge
from midstream.state.keys import Mask
from midstream.state.lineage import later
from midstream.state.rows import taken_rows, united

Nodes = tuple[int, ...]
"""Nodes by their numbers, ascending."""

Groups = Sequence[tuple[Nodes, Chunk]]
"""The step's rows of a source, by the nodes at which they are at home."""


@dataclass(frozen=True)
class Listed:
    """A chunk at a node: `here` marks the rows that are at home there, `alive` those that live; None means all."""

    ref: ChunkRef
    chunk: Chunk
    here: Mask | None
    alive: Mask | None

    @property
    def rows(self) -> NodeRows:
        """The chunk as the node searches it."""
        return NodeRows(self.chunk, self.here)

    @property
    def mask(self) -> Mask | None:
        """The rows that live here."""
        if self.here is None or self.alive is None:
            return self.alive if self.here is None else self.here
        return self.here & self.alive

    @property
    def live(self) -> int:
        """How many rows live here."""
        mask = self.mask
        return self.ref.rows if mask is None else int(mask.sum())


AtNodes = Mapping[int, Listed]
"""A chunk at each node where some of its rows are at home."""


@dataclass(frozen=True)
class Homes:
    """Where the rows of a source are at home in a step.

    `bound` is the least end of a lifetime that still matters. Where `settled`, a row's home is the same in every step,
    and is found once. Where queries share the ring, `shared` says for how long they need each row.
    """

    spreading: Spreading
    deployment: Deployment
    keys: Keys
    label: str
    bound: int
    settled: str = ""
    shared: SharedQueries | None = None

    def of(self, batch: pa.RecordBatch) -> Copies:
        """Return the nodes of each row."""
        return self.spreading.home(self.deployment, self.label, stream_rows(self.label, batch, self.keys))

    def alive(self, ref: ChunkRef, batch: pa.RecordBatch) -> Mask | None:
        """Tell which rows of a chunk live; None where all do."""
        ends = ref.lifetimes.get(EVENT_TIME)
        if ends is not None and ends[0] >= self.bound:
            return None
        return self.ends(batch) >= self.bound

    def ends(self, batch: pa.RecordBatch) -> Words:
        """Compute the last moment of each row."""
        if self.shared is not None:
            return self.shared.ends(self.label, batch)
        return later(times(batch), self.deployment.windows[self.label])

    def at_nodes(self, chunks: Iterable[tuple[ChunkRef, Chunk]]) -> list[AtNodes]:
        """List each chunk of the source at the nodes where its living rows are at home in the step. Dead chunks are
        left out."""
        return [at for ref, chunk in chunks if (at := self.listed(ref, chunk))]

    def listed(self, ref: ChunkRef, chunk: Chunk) -> dict[int, Listed]:
        """List a chunk at every node where one of its living rows is at home."""
        batch = chunk.batch
        alive = self.alive(ref, batch)
        copies = chunk.once(("home", self.label, self.settled), lambda: self.of(batch)) if self.settled else (
            self.of(batch))  # fmt: skip
        living = copies.node if alive is None else copies.node[alive[copies.row]]
        nodes = present(living).tolist()
        if len(nodes) == 1 and len(living) == len(copies) == len(batch):
            return {nodes[0]: Listed(ref, chunk, None, alive)}
        return {node: Listed(ref, chunk, _here(copies, node, len(batch)), alive) for node in nodes}

    def groups(self, batch: pa.RecordBatch) -> Groups:
        """Group the step's rows by the nodes at which they are at home. A row is in one group, however many copies
        it has."""
        if not batch.num_rows:
            return []
        copies = self.of(batch)
        if len(copies) == batch.num_rows:
            node = np.empty(batch.num_rows, np.int64)
            node[copies.row] = copies.node
            return [((one,), Chunk(taken_rows(batch, np.flatnonzero(node == one)))) for one in present(node).tolist()]
        sets, group = np.unique(_node_sets(copies, batch.num_rows), axis=0, return_inverse=True)
        rows = (Chunk(taken_rows(batch, np.flatnonzero(group.ravel() == at))) for at in range(len(sets)))
        return [(tuple(one for one in nodes if one >= 0), own) for nodes, own in zip(sets.tolist(), rows, strict=True)]


def _node_sets(copies: Copies, rows: int) -> npt.NDArray[np.int64]:
    # Ascending, behind -1 in place of the nodes that other rows have more.
    order = np.lexsort((copies.node, copies.row))
    row, node = copies.row[order], copies.node[order]
    counts = np.bincount(row, minlength=rows)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.full((rows, int(counts.max())), -1, np.int64)
    found[row, found.shape[1] - counts[row] + place] = node
    return found


def _here(copies: Copies, node: int, rows: int) -> Mask | None:
    here = np.zeros(rows, np.bool_)
    here[copies.row[copies.node == node]] = True
    return None if here.all() else here


@dataclass(frozen=True)
class Keeping:
    """What nodes list of a source after a step; `name` begins the names of new chunks.

    Each row is in one chunk, which is listed wherever one of its living rows is at home: nothing is copied. Chunks
    whose rows are all at home at the same nodes are put together once there are many.
    """

    store: ChunkStore
    name: str
    homes: Homes

    def kept(self, old: Iterable[AtNodes], new: Groups) -> list[tuple[Nodes, tuple[ChunkRef, ...]]]:
        """List the chunks to keep and their nodes, from the chunks of before and the groups of the step's rows."""
        settled: dict[Nodes, list[tuple[Chunk, ChunkRef | None]]] = {}
        found: list[tuple[Nodes, tuple[ChunkRef, ...]]] = []
        for at in old:
            nodes = tuple(sorted(at))
            if all(one.here is None for one in at.values()):
                settled.setdefault(nodes, []).append(_unless_thin(next(iter(at.values()))))
            else:
                found.append((nodes, (at[nodes[0]].ref,)))
        for nodes, chunk in new:
            settled.setdefault(nodes, []).append((chunk, None))
        merged = ((nodes, self._merged("_".join(map(str, nodes)), runs)) for nodes, runs in sorted(settled.items()))
        return [*found, *((nodes, tuple(chunks)) for nodes, chunks in merged)]

    def _merged(self, nodes: str, runs: list[tuple[Chunk, ChunkRef | None]]) -> list[ChunkRef]:
        while found := rows_to_merge([chunk.batch for chunk, _ in runs]):
            merged = [chunk.batch for chunk, _ in runs[found[0] : found[1]]]
            runs[found[0] : found[1]] = [(Chunk(united(merged, merged[0].schema.names)), None)]
        return [ref or self._stored(f"{self.name}-{nodes}-{at}", chunk) for at, (chunk, ref) in enumerate(runs)]

    def _stored(self, name: str, chunk: Chunk) -> ChunkRef:
        ends, rows = self.homes.ends(chunk.batch), unmarked(chunk.batch)
        lifetimes = {EVENT_TIME: (int(ends.min()), int(ends.max()))}
        return store_chunk(self.store, name, chunk if rows is chunk.batch else rows, lifetimes=lifetimes)


def _unless_thin(one: Listed) -> tuple[Chunk, ChunkRef | None]:
    # Once most of a chunk is dead, its living rows are written anew.
    if one.alive is not None and is_sparse(int(one.alive.sum()), one.ref.rows):
        return Chunk(one.chunk.batch.filter(pa.array(one.alive))), None
    return one.chunk, one.ref
