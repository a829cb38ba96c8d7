"""Join state: insert, probe, purge, snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.model.manifest import StateListing
from midstream.state.compaction import choose_run, is_sparse
from midstream.state.parts import Part, from_batch, is_dead, merge_parts, purge_part, to_batch
from midstream.state.specs import StateSpec
from midstream.state.store import ChunkStore, store_chunk


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

    def finish(self, store: ChunkStore, name: str) -> StateListing:
        """Store what is new, compact, and list the chunks. `name` begins the new chunks' names."""
        parts = [p if p.ref and not is_sparse(len(p), p.ref.rows) else Part(p.codes, p.combinations) for p in self.old]
        if self.delta is not None and len(self.delta):
            parts.append(self.delta)
        while run := choose_run([len(p) for p in parts]):
            parts[run[0] : run[1]] = [merge_parts(parts[run[0] : run[1]])]
        chunks = tuple(
            part.ref or store_chunk(store, f"{name}-{at}", to_batch(part), lifetimes=part.combinations.lifetimes())
            for at, part in enumerate(parts)
        )
        lineage = self.spec.lineage.digest if self.spec.lineage else ""
        return StateListing(chunks, sum(map(len, parts)), left_out=self.left_out, lineage=lineage)
