"""What moves where a ring of equal slices grows: how much each node passes on, and where new nodes stand (Wang §14.2).

Differs from Eq. 14.1 in that a new node also stands behind the node at which (M / N) i *is* the number j, where the
text asks for more than j: with one node added, no node would pass that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from midstream.ring.slice_table import SliceTable


@dataclass(frozen=True)
class Relocation:
    """A ring of `nodes` equal slices to which `added` nodes come; slices are measured in those of the longer ring."""

    nodes: int
    added: int

    def passed_on(self) -> list[Fraction]:
        """Compute Delta S_i for each node from the head on: what it passes on to its next node, old or new.

        >>> [str(part) for part in Relocation(3, 1).passed_on()]
        ['1/3', '2/3', '0']
        """
        shares = [Fraction(self.added, self.nodes) * at for at in range(1, self.nodes + 1)]
        return [share - int(share) for share in shares]

    def behind(self) -> list[int]:
        """Find for each new node the old one behind which it is inserted, the first that can fill it; counted from 1.

        >>> Relocation(3, 1).behind(), Relocation(2, 3).behind()
        ([3], [1, 2, 2])
        """
        return [-(-self.nodes * new // self.added) for new in range(1, self.added + 1)]

    def order(self) -> list[int | None]:
        """List the longer ring from head to tail: old nodes by their place, counted from 1, new ones as None.

        >>> Relocation(2, 3).order()
        [1, None, 2, None, None]
        """
        behind = self.behind()
        return [node for old in range(1, self.nodes + 1) for node in (old, *[None] * behind.count(old))]


def ring_of(ring: Sequence[int], nodes: Sequence[int]) -> tuple[int, ...]:
    """Order a ring of other `nodes`, from the head on, than it has.

    New nodes are inserted where they can be filled; the others of the ring leave.

    >>> ring_of((0, 1), range(5)), ring_of((0, 2, 1, 3, 4), range(2)), ring_of((0, 1, 2), (2, 3))
    ((0, 2, 1, 3, 4), (0, 1), (2, 3))
    """
    kept, coming = [node for node in ring if node in nodes], [node for node in nodes if node not in ring]
    if not kept or not coming:
        return (*kept, *coming)
    new = iter(coming)
    order = Relocation(len(kept), len(coming)).order()
    return tuple(next(new) if place is None else kept[place - 1] for place in order)


def relocated(
    table: SliceTable, ring: Sequence[int], nodes: Sequence[int], length: int, bounded: bool = False
) -> tuple[SliceTable, tuple[int, ...]]:
    """Cut a state slice table for other nodes: every node passes rows on to its neighbour.

    `ring` are the nodes until then and `length` is that of their slices, by which the head ends in time to come, but
    where slices are `bounded` by count. The slices of a round of the ring become as many as there are nodes then, each
    cut where its share of time is.

    >>> table, ring = relocated(SliceTable((0, 40, 80), (2, 1, 0), newest=110), (0, 1, 2), range(4), 40)
    >>> table.starts, table.nodes, ring
    ((0, 30, 60, 90), (3, 2, 1, 0), (0, 1, 2, 3))
    """
    head = list(ring).index(table.nodes[-1])
    new = ring_of((*ring[head:], *ring[:head]), nodes)
    before, after, starts = len(ring), len(new), table.starts[::-1]
    newest = max(table.newest, starts[0])
    ends = (newest + 1 if bounded else max(starts[0] + length, newest + 1), *starts)
    cuts = []
    for place in range(1, -(-len(starts) * after // before) + 1):
        # In which slice, counted from the head, the new one begins, and which part of it, in n-ths, is the new one's.
        slices = min(-(-place * before // after), len(starts))
        part = min(place * before - (slices - 1) * after, after)
        end, start = ends[slices - 1], starts[slices - 1]
        cuts.append((end - (end - start) * part // after, new[(place - 1) % after]))
    begun = [cut for cut in cuts if cut[0] <= newest][::-1]
    return SliceTable(tuple(start for start, _ in begun), tuple(node for _, node in begun), 0, table.newest), new
