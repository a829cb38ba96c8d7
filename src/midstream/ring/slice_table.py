"""The state slice table of a source whose rows stay where they came (PSP-D: Wang §12.5, §14.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from midstream.ring.columns import EARLIEST, LATEST, Words


@dataclass(frozen=True)
class SliceTable:
    """The slices of a source, from the tail to the head: from which event time on each takes rows, and at which node.

    A slice ends where the next begins; the tail takes whatever is older, the head whatever is newer. `rows` are those
    counted in the head so far, `newest` is the greatest event time that has come.

    Differs from §12.5 in that a row goes by its event time alone, not by when it came: one that comes late goes to the
    slice that its time lies in, though the head has moved on.

    >>> table = SliceTable((0,), (0,)).grown([0, 4, 9, 12, 31], length=10, nodes=3)
    >>> table.starts, table.nodes
    ((0, 12, 31), (0, 2, 1))
    >>> table.trimmed(oldest=25).nodes
    (2, 1)
    """

    starts: tuple[int, ...]
    nodes: tuple[int, ...]
    rows: int = 0
    newest: int = EARLIEST

    def place(self, ts: Words) -> Words:
        """Find the slice of each event time, counted from the tail."""
        found: Words = np.maximum(np.searchsorted(self.starts, ts, "right") - 1, 0)
        return found

    def bounds(self, places: Words) -> tuple[Words, Words]:
        """Return the first and the last event time of these slices."""
        starts = np.array(self.starts[1:], np.int64)
        return np.append(EARLIEST, starts)[places], np.append(starts - 1, LATEST)[places]

    def grown(
        self,
        arrivals: Sequence[int] | Words,
        length: int,
        nodes: int,
        most: int | None = None,
        ring: Sequence[int] = (),
    ) -> SliceTable:
        """Extend the table by rows that have come; no row that came before changes its slice.

        Where the head spans `length`, or has `most` rows (workload smoothing, §14.1), it is full: the next row that is
        newer than any before moves the head to the next node in reverse direction of the ring, the present tail. Rows
        of equal time share a slice. `ring` are the nodes from the head on, where they are not in order of number.
        """
        ring = list(ring or range(nodes))
        ts = np.sort(np.asarray(arrivals, np.int64))
        starts, at, rows, newest = list(self.starts), list(self.nodes), self.rows, self.newest
        begin = int(np.searchsorted(ts, starts[-1], "left"))
        while begin < len(ts):
            # Rows up to the newest stay in the head: where slices have become shorter, it spans more than the length.
            end = int(np.searchsorted(ts, max(starts[-1] + length, newest + 1), "left"))
            if most is not None and (fit := max(most - rows, 0)) < end - begin:
                last = max(newest, int(ts[begin + fit - 1])) if fit else newest
                end = min(end, max(begin, int(np.searchsorted(ts, last, "right"))))
            if end > begin:
                rows, newest = rows + end - begin, max(newest, int(ts[end - 1]))
            begin = end
            if begin < len(ts):
                starts.append(int(ts[begin]))
                at.append(ring[ring.index(at[-1]) - 1])
                rows = 0
        return SliceTable(tuple(starts), tuple(at), rows, newest)

    def trimmed(self, oldest: int) -> SliceTable:
        """Drop the slices whose rows are all older than this: the tail moves on."""
        keep = int(self.place(np.array([oldest]))[0])
        return SliceTable(self.starts[keep:], self.nodes[keep:], self.rows, self.newest)
