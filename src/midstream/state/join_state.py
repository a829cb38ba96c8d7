"""Join state: insert, probe, purge, snapshot; in a chain, slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from midstream.model.manifest import ChunkRef, StateListing
from midstream.state.compaction import choose_run, is_sparse
from midstream.state.lineage import Lineage
from midstream.state.parts import Part, from_batch, is_dead, merge_parts, purge_part, to_batch
from midstream.state.specs import StateSpec
from midstream.state.store import ChunkStore, store_chunk

MOST_IN_SLICE = 2
"""Chunks of one slice; one more are merged."""


class JoinState:
    """The combinations of one signature during one step: `old` ones from before it, and the step's `delta`.

    Old and new stand apart until the step ends, so that operators which share a state meet it alike whatever their
    order.
    """

    def __init__(self, spec: StateSpec, old: Sequence[Part], purged: int = 0, left_out: int = 0) -> None:
        self.spec = spec
        self.old: list[Part] = [p for p in old if len(p)]
        self.delta: Part | None = None
        self.purged = purged
        self.moved = 0
        self.left_out = left_out + sum(part.left_out for part in old)

    @staticmethod
    def load(spec: StateSpec, listing: StateListing, bounds: dict[str, int], store: ChunkStore) -> JoinState:
        """The state as a manifest lists it, without the rows that died since."""
        alive = [ref for ref in listing.chunks if not is_dead(ref, bounds)]
        parts = [purge_part(from_batch(store.get(ref), spec, ref), bounds) for ref in alive]
        return JoinState(spec, parts, listing.live - sum(map(len, parts)), listing.left_out)

    @property
    def live(self) -> int:
        """How many combinations are alive, the step's own included."""
        return sum(map(len, self.old)) + (len(self.delta) if self.delta else 0)

    def insert(self, delta: Part) -> bool:
        """Take in the step's combinations; False if another operator already did."""
        if self.delta is not None:
            return False
        self.delta = delta
        self.left_out += delta.left_out
        return True

    def finish(self, store: ChunkStore, name: str, now: int | None = None) -> StateListing:
        """Store what is new, compact, and list the chunks. `name` begins the new chunks' names.

        In a chain that is cut, chunks are listed slice by slice: `now` is the time that ages are reckoned from.
        """
        parts = [p if p.ref and not is_sparse(len(p), p.ref.rows) else Part(p.codes, p.combinations) for p in self.old]
        if self.delta is not None and len(self.delta):
            parts.append(self.delta)
        if self.spec.lineage is not None and self.spec.lineage.cuts and now is not None:
            return self._finish_slices(store, name, parts, self.spec.lineage, now)
        while run := choose_run([len(p) for p in parts]):
            parts[run[0] : run[1]] = [merge_parts(parts[run[0] : run[1]])]
        chunks = [part.ref or _stored(store, f"{name}-{at}", part) for at, part in enumerate(parts)]
        if self.spec.lineage is not None:
            clock = self.spec.lineage.clock
            known = ((born_in(part, clock), len(part)) for part in parts)
            chunks = [replace(r, born=born, alive=alive) for r, (born, alive) in zip(chunks, known, strict=True)]
        return self._listing(tuple(chunks), parts)

    def _finish_slices(
        self, store: ChunkStore, name: str, parts: list[Part], lineage: Lineage, now: int
    ) -> StateListing:
        """List the chunks by slice: one whose youngest row has reached a slice is listed there, and no row is copied.

        Chunks are merged within a slice only, so that a slice can be told apart as long as it is one.
        """
        slices = [slice_of(born_in(part, lineage.clock), lineage.cuts, now) for part in parts]
        chunks: list[ChunkRef] = []
        kept: list[Part] = []
        for at, group in groupby(range(len(parts)), lambda i: slices[i]):
            inside = [parts[i] for i in group]
            while run := choose_run([len(p) for p in inside], MOST_IN_SLICE):
                inside[run[0] : run[1]] = [merge_parts(inside[run[0] : run[1]])]
            for part in inside:
                ref = part.ref or _stored(store, f"{name}-{len(chunks)}", part)
                if part.ref is not None and part.ref.slice != at:
                    self.moved += len(part)
                chunks.append(replace(ref, slice=at, born=born_in(part, lineage.clock), alive=len(part)))
            kept += inside
        return self._listing(tuple(chunks), kept)

    def _listing(self, chunks: tuple[ChunkRef, ...], parts: Sequence[Part]) -> StateListing:
        lineage = self.spec.lineage.digest if self.spec.lineage else ""
        return StateListing(chunks, sum(map(len, parts)), left_out=self.left_out, lineage=lineage)


def born_in(part: Part, clock: str) -> tuple[int, int]:
    """The least and the greatest time of a part's rows, of which it has some."""
    if part.ref is not None and part.ref.born is not None:
        return part.ref.born
    times = part.combinations.now[clock]
    return int(times.min()), int(times.max())


def slice_of(born: tuple[int, int], cuts: Sequence[int], now: int) -> int:
    """The slice of rows born then, by the age of the youngest; a row of age exactly a cut is still before it.

    Wang's slices are half-open the other way round, `W_(i-1) <= age < W_i`; windows are inclusive here.

    >>> slice_of((0, 5), cuts=(10, 20), now=15), slice_of((0, 5), cuts=(10, 20), now=16)
    (0, 1)
    """
    return min(bisect_left(cuts, max(now - born[1], 0)), len(cuts) - 1)


def _stored(store: ChunkStore, name: str, part: Part) -> ChunkRef:
    return store_chunk(store, name, to_batch(part), lifetimes=part.combinations.lifetimes())
