"""Workloads of the lab: streams of the generator, cut by time, and the queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.embedded.stream_generator import GeneratedStream, Schedule
from midstream.model.window import SECOND

GOLDEN = (5**0.5 - 1) / 2

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Workload:
    """Streams, and the query over them; `seed` fixes every arrival.

    Streams draw from generators of their own, so that a change to one leaves the others' rows as they were.
    """

    sources: tuple[GeneratedStream, ...]
    sql: str
    seed: int = 0

    def arrivals(self, until: float) -> dict[str, Arrivals]:
        """Generate the rows of each stream up to an end."""
        return {
            source.name: Arrivals(source.rows(0, until, np.random.default_rng([self.seed, number])))
            for number, source in enumerate(self.sources)
        }


@dataclass(frozen=True)
class Arrivals:
    """The rows of a stream in order of time, cut by time."""

    rows: pa.Table = field(repr=False)

    @cached_property
    def times(self) -> Times:
        """The event times in microseconds."""
        found: Times = self.rows.column("ts").cast(pa.int64()).to_numpy()
        return found

    def before(self, second: float) -> int:
        """Count the rows that arrive before a time."""
        return int(np.searchsorted(self.times, round(second * SECOND), "left"))

    def between(self, start: float, end: float) -> pa.Table:
        """Select the rows that arrive from `start` on and before `end`."""
        first = self.before(start)
        return self.rows.slice(first, self.before(end) - first)


def equal(left: str, right: str, *, nested: bool = False) -> str:
    """Write the SQL of a join predicate on two columns, by hash or, as in the papers' plans, a nested loop.

    >>> equal("A.ab", "B.ab"), equal("A.ab", "B.ab", nested=True)
    ('A.ab = B.ab', 'NOT A.ab <> B.ab')
    """
    # The engine sees through neither: an inequality has no index, whatever stands before it.
    return f"NOT {left} <> {right}" if nested else f"{left} = {right}"


def query(names: Sequence[str], predicates: Sequence[str], window: str) -> str:
    """Write the SQL of a join that selects the result's time T, the greatest of its components', as `moment`.

    `window` is the text in brackets, for every stream: `RANGE 2 SECONDS`, `ROWS 100`.

    >>> query("AB", [equal("A.k", "B.k")], "ROWS 9")
    'SELECT GREATEST(A.ts, B.ts) AS moment FROM A [ROWS 9], B [ROWS 9] WHERE A.k = B.k'
    """
    moment = ", ".join(f"{name}.ts" for name in names)
    sources = ", ".join(f"{name} [{window}]" for name in names)
    return f"SELECT GREATEST({moment}) AS moment FROM {sources} WHERE {' AND '.join(predicates)}"


@dataclass(frozen=True)
class Even(GeneratedStream):
    """A Poisson source whose keys run through their domain in even strides, from a random place.

    Over many joins chance in the keys multiplies: of a hundred Poisson numbers of mean 1 the product is mostly 0 and
    now and then a million. Figures that vary something else use these keys, of which every stretch of a stream has its
    share, instead of random ones.
    """

    @override
    def rows(self, start: float, until: float, generator: np.random.Generator) -> pa.Table:
        return self.spread(super().rows(start, until, generator), generator)

    def spread(self, found: pa.Table, generator: np.random.Generator) -> pa.Table:
        """Replace the keys of rows by evenly spread ones."""
        seconds = found.column("ts").cast(pa.int64()).to_numpy() / SECOND
        for at, (name, size) in enumerate(self.columns.items()):
            sizes = Schedule.of(size).at(seconds).astype(np.int64)
            found = found.set_column(at, name, pa.array(strides(sizes, generator)))
        return found


def strides(sizes: npt.NDArray[np.int64], generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Generate a key below the domain's size for each row; `size` consecutive rows have every key once.

    >>> sorted(strides(np.full(7, 7), np.random.default_rng(1)).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    keys = np.zeros(len(sizes), np.int64)
    for size in np.unique(sizes):
        at = np.flatnonzero(sizes == size)
        keys[at] = (stride(int(size)) * np.arange(len(at)) + generator.integers(0, size)) % size
    return keys


def stride(size: int) -> int:
    """Choose the step that spreads keys most evenly over a domain and meets all of them (by the golden ratio).

    >>> stride(5), stride(100)
    (3, 61)
    """
    ideal = GOLDEN * size
    return min((step for step in range(1, size + 1) if gcd(step, size) == 1), key=lambda step: abs(step - ideal))
