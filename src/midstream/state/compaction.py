"""Compaction: which small neighbours become one chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

MOST_CHUNKS = 8
"""A state of more chunks than this is compacted; each probe searches every chunk once."""

MOST_BYTES = 1 << 30
"""Compaction makes no chunk of more bytes: Arrow counts the bytes of a column of texts in 31 bits."""

MOST_ROWS = 1 << 18
"""Compaction makes no chunk of base rows that has more of them: so many are copied within a push. A probe does not
search them, so that many such chunks do no harm.
"""

SMALL, MOST_SMALL = 2_048, 3
"""Up to so many rows a chunk is small, and of more small neighbours than that one chunk is made: it costs less to write
so few rows again than to search one more chunk in every probe, and to list it in every manifest.
"""


MOST_BESIDE_LARGE = 4
"""Next to many large chunks, which are not merged, there are at most so many others: to write these again costs a small
step less than to search one more.
"""


MOST_OF_ROWS, AT_ONCE = 12, 5
"""Chunks of base rows, which no probe searches, are compacted when they are more, and as many at once where that can
be: a batch made of five takes hardly longer than one of two, and is made a fourth as often.
"""


class Pace(NamedTuple):
    """How many rows of a large state a step may touch that its own rows do not ask for."""

    dying: int = 1 << 14
    """Of chunks of fewer rows the dead ones are taken out in each step; in larger ones they are passed over."""

    merging: int = 1 << 20
    """A step writes at most so many rows of a lane again, and merges no larger chunk; larger ones die as a whole."""

    beside: int = 8
    """What is fewer than so many times the step's rows is not large: it adds a share to the step, not a wait."""

    def dying_in(self, rows: int) -> int:
        """Return how many rows a chunk has at least whose dead are passed over in a step of so many rows.

        >>> Pace().dying_in(300), Pace().dying_in(60_000)
        (16384, 480000)
        """
        return max(self.dying, self.beside * rows)

    def rewriting_in(self, rows: int) -> Rewriting:
        """Return how many rows a lane may write again in a step that brings or makes so many rows.

        >>> Pace().rewriting_in(300).most, Pace().rewriting_in(1_000_000).most
        (1048576, 8000000)
        """
        return Rewriting(max(self.merging, self.beside * rows))


class Rewriting:
    """The number of rows of a lane that a step may still rewrite; other rows wait for a later step.

    >>> rewriting = Rewriting(100)
    >>> rewriting.grants(80), rewriting.grants(30), rewriting.grants(20)
    (True, False, True)
    """

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def grants(self, rows: int) -> bool:
        """Take so many rows off what is left, if there are as many."""
        if rows > self.left:
            return False
        self.left -= rows
        return True


PACE = Pace()


def to_merge(sizes: Sequence[int], most: int = MOST_CHUNKS, limit: int = PACE.merging) -> tuple[int, int] | None:
    """Choose the half-open range of neighbours to merge: small chunks, or those of `choose_neighbours`.

    The merged chunk has at most `limit` rows. Of chunks of more than half of that there may be any number.

    >>> to_merge([40_000, 10, 10, 10, 10]), to_merge([40_000, 10, 10, 10])
    ((1, 5), None)
    """
    if len(sizes) <= min(most, MOST_SMALL):
        return None
    begin = rows = 0
    for end, size in enumerate([*sizes, SMALL + 1]):
        rows += size
        if size > SMALL or rows > limit:
            if end - begin > MOST_SMALL:
                return begin, end
            begin, rows = (end + 1, 0) if size > SMALL else (end, size)
    large = len([1 for size in sizes if 2 * size > limit])
    return choose_neighbours(sizes, max(most, large + MOST_BESIDE_LARGE), limit=limit)


def to_unite(sizes: Sequence[int], limit: int) -> tuple[int, int] | None:
    """Choose the first neighbours that make one chunk of at most `limit` rows, as many as fit.

    >>> to_unite([80, 30, 60, 10, 5], 100), to_unite([80, 100, 5], 100)
    ((1, 4), None)
    """
    rows = begin = 0
    for end, size in enumerate(sizes):
        if rows + size > limit:
            if end - begin > 1:
                return begin, end
            rows, begin = 0, end
        rows += size
    return (begin, len(sizes)) if len(sizes) - begin > 1 else None


def rows_to_merge(batches: Sequence[pa.RecordBatch], limit: int = MOST_ROWS) -> tuple[int, int] | None:
    """Choose the half-open range of chunks of base rows to merge, of at most `MOST_BYTES`, by their numbers of rows.

    The merged chunk has at most `limit` rows. Chunks of more than half of that do not count as many.
    """
    if len(batches) <= MOST_OF_ROWS:
        return None
    rows = [batch.num_rows for batch in batches]
    most = MOST_OF_ROWS + len([1 for count in rows if 2 * count > limit])
    found = choose_neighbours(rows, most, least=AT_ONCE, limit=limit) or choose_neighbours(rows, most, limit=limit)
    if found is None or _at_most(MOST_BYTES, batches[slice(*found)]):
        return found
    return choose_neighbours(rows, most, sizes_in_bytes=[batch.nbytes for batch in batches], limit=limit)


def _at_most(limit: int, batches: Sequence[pa.RecordBatch]) -> bool:
    # `nbytes` takes a hundred times as long as the size of the buffers, which columns may share.
    if sum([batch.get_total_buffer_size() * batch.num_columns for batch in batches]) <= limit:
        return True
    return bool(sum([batch.nbytes for batch in batches]) <= limit)


def choose_neighbours(
    sizes: Sequence[int],
    most: int = MOST_CHUNKS,
    sizes_in_bytes: Sequence[int] = (),
    least: int = 2,
    limit: int | None = None,
) -> tuple[int, int] | None:
    """Choose the half-open range of neighbours to merge into one chunk, or None while there are few enough.

    Takes the balanced run, of `least` neighbours at least, with the fewest rows. In a balanced run no chunk has more
    than half of the rows, so each row's chunk at least doubles and a row is rewritten at most log2(n) times; where no
    run is balanced, sizes grow geometrically and there are at most about log2(n) chunks too many. Where
    `sizes_in_bytes` are known, a run has at most `MOST_BYTES`: of so many bytes there may be any number of chunks. With
    a `limit` it has at most so many rows.

    >>> choose_neighbours([40, 10, 10, 10, 10, 10, 10, 10, 90])
    (1, 3)
    >>> choose_neighbours([1, 2, 3]) is None
    True
    >>> choose_neighbours([9] * 9, sizes_in_bytes=[1 << 29, 1 << 30, *[1 << 29] * 7])
    (2, 4)
    """
    if len(sizes) <= most:
        return None
    best: tuple[int, int, int] | None = None
    count = len(sizes)
    for start in range(count - 1, -1, -1):  # The newest are the smallest.
        rows = greatest = sizes[start]
        for end in range(start + 2, count + 1):
            rows += sizes[end - 1]
            if sizes[end - 1] > greatest:
                greatest = sizes[end - 1]
            if end < start + least:
                continue
            if (best is not None and rows > best[0]) or (limit is not None and rows > limit):
                break
            if sizes_in_bytes and sum(sizes_in_bytes[start:end]) > MOST_BYTES:
                break
            if 2 * greatest <= rows and (best is None or (rows, start, end) < best):
                best = rows, start, end
    return best and best[1:]


def is_sparse(live: int, rows: int) -> bool:
    """Return whether so much of a chunk is dead that rewriting the rest frees memory.

    >>> is_sparse(live=40, rows=100), is_sparse(live=60, rows=100)
    (True, False)
    """
    return live * 2 < rows
