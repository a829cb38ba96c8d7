"""Compaction: which small neighbours become one chunk."""

from __future__ import annotations

from collections.abc import Sequence

MOST_CHUNKS = 8
"""A state of more chunks than this is compacted; each probe searches every chunk once."""

RUN = 4
"""How many neighbours are merged at once."""


def choose_run(sizes: Sequence[int]) -> tuple[int, int] | None:
    """The half-open range of neighbours to merge into one chunk, or None while there are few enough.

    Takes the run of `RUN` neighbours with the fewest rows, so that a row is rewritten about log(n) times.

    >>> choose_run([40, 10, 10, 10, 10, 10, 10, 10, 90])
    (1, 5)
    >>> choose_run([1, 2, 3]) is None
    True
    """
    if len(sizes) <= MOST_CHUNKS:
        return None
    starts = range(len(sizes) - RUN + 1)
    best = min(starts, key=lambda i: (sum(sizes[i : i + RUN]), i))
    return best, best + RUN


def is_sparse(live: int, rows: int) -> bool:
    """Whether so much of a chunk is dead that writing the rest anew frees memory.

    >>> is_sparse(live=40, rows=100), is_sparse(live=60, rows=100)
    (True, False)
    """
    return live * 2 < rows
