"""Compaction: which small neighbours become one chunk."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

MOST_CHUNKS = 8
"""A state of more chunks than this is compacted; each probe searches every chunk once."""

MOST_BYTES = 1 << 30
"""Compaction makes no chunk of more bytes: Arrow counts the bytes of a column of texts in 31 bits."""

SMALL, MOST_SMALL = 2_048, 3
"""Up to so many rows a chunk is small, and of more small neighbours than that one chunk is made: it costs less to write
so few rows anew than to search one more chunk in every probe, and to list it in every manifest.
"""


MOST_OF_ROWS, AT_ONCE = 12, 5
"""Chunks of base rows, which no probe searches, are compacted when they are more, and as many at once where that can
be: a batch made of five takes hardly longer than one of two, and is made a fourth as often.
"""


def to_merge(sizes: Sequence[int], most: int = MOST_CHUNKS) -> tuple[int, int] | None:
    """Choose the half-open range of neighbours to merge into one chunk: small ones, or as `choose_neighbours` does.

    >>> to_merge([40_000, 10, 10, 10, 10]), to_merge([40_000, 10, 10, 10])
    ((1, 5), None)
    """
    if len(sizes) <= min(most, MOST_SMALL):
        return None
    begin = 0
    for end, size in enumerate([*sizes, SMALL + 1]):
        if size > SMALL:
            if end - begin > MOST_SMALL:
                return begin, end
            begin = end + 1
    return choose_neighbours(sizes, most)


def rows_to_merge(batches: Sequence[pa.RecordBatch]) -> tuple[int, int] | None:
    """Choose the half-open range of chunks of base rows to merge, of at most `MOST_BYTES`, by their numbers of rows."""
    if len(batches) <= MOST_OF_ROWS:
        return None
    rows = [batch.num_rows for batch in batches]
    found = choose_neighbours(rows, MOST_OF_ROWS, least=AT_ONCE) or choose_neighbours(rows, MOST_OF_ROWS)
    if found is None or _at_most(MOST_BYTES, batches[slice(*found)]):
        return found
    return choose_neighbours(rows, MOST_OF_ROWS, sizes_in_bytes=[batch.nbytes for batch in batches])


def _at_most(limit: int, batches: Sequence[pa.RecordBatch]) -> bool:
    # `nbytes` takes a hundred times as long as the size of the buffers, which columns may share.
    if sum([batch.get_total_buffer_size() * batch.num_columns for batch in batches]) <= limit:
        return True
    return bool(sum([batch.nbytes for batch in batches]) <= limit)


def choose_neighbours(
    sizes: Sequence[int], most: int = MOST_CHUNKS, sizes_in_bytes: Sequence[int] = (), least: int = 2
) -> tuple[int, int] | None:
    """Choose the half-open range of neighbours to merge into one chunk, or None while there are few enough.

    Takes the balanced run, of `least` neighbours at least, with the fewest rows. In a balanced run no chunk has more
    than half of the rows, so each row's chunk at least doubles and a row is rewritten at most log2(n) times; where no
    run is balanced, sizes grow geometrically and there are at most about log2(n) chunks too many. Where
    `sizes_in_bytes` are known, a run has at most `MOST_BYTES`: of so many bytes there may be any number of chunks.

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
            if best is not None and rows > best[0]:
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
