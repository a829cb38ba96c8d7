"""Keys without chance: uniform values of which every stretch of a stream has its share.

Over many joins chance in the keys multiplies: of a hundred Poisson numbers of mean 1 the product is mostly 0 and now
and then a million. Figures that vary something else use these keys instead of random ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.lab.generator import SECOND, GeneratedStream, Schedule

GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Even(GeneratedStream):
    """A Poisson source whose keys run through their domain in even strides, from a random place."""

    @override
    def rows(self, until: float, generator: np.random.Generator) -> pa.Table:
        return self.spread(super().rows(until, generator), generator)

    def spread(self, found: pa.Table, generator: np.random.Generator) -> pa.Table:
        """The rows with their keys so."""
        seconds = found.column("ts").cast(pa.int64()).to_numpy() / SECOND
        for at, (name, size) in enumerate(self.columns.items()):
            sizes = Schedule.of(size).at(seconds).astype(np.int64)
            found = found.set_column(at, name, pa.array(strides(sizes, generator)))
        return found


def strides(sizes: npt.NDArray[np.int64], generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """A key below the domain's size for each row; as many rows as the size is large have every key once.

    >>> sorted(strides(np.full(7, 7), np.random.default_rng(1)).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    keys = np.zeros(len(sizes), np.int64)
    for size in np.unique(sizes):
        at = np.flatnonzero(sizes == size)
        keys[at] = (stride(int(size)) * np.arange(len(at)) + generator.integers(0, size)) % size
    return keys


def stride(size: int) -> int:
    """The step that spreads keys most evenly over a domain and meets all of them (the golden ratio's part of it).

    >>> stride(5), stride(100)
    (3, 61)
    """
    wanted = GOLDEN * size
    return min((step for step in range(1, size + 1) if gcd(step, size) == 1), key=lambda step: abs(step - wanted))
