"""Ten queries and a thousand that want equally many results in total: what a query costs beyond its results.

Both sets have the same longest window, so that both do the same join; the other windows of the thousand are so small
that both sets have the same number of results in the measured steps. How small is found on the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.sharing.embedded import engine_for, timed_push
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.record import Scaling
from benchmarks.sharing.workload import LONGEST, STREAMS, Feed, sql, uniform

FEW, MANY = 10, 1_000
ALLOWED, TOLERANCE = 2.0, 0.01
KEYS = 1_320

Ages = npt.NDArray[np.int64]


def windows_of(count: int, largest: int) -> tuple[int, ...]:
    """So many different windows: one is `LONGEST`, the others lie in equal distances up to the `largest` of them.

    >>> windows_of(4, 300)
    (100, 200, 300, 30000000)
    """
    rest = count - 1
    return (*[largest * number // rest for number in range(1, rest + 1)], LONGEST)


def wanted_by(windows: Sequence[int], ages: Ages) -> int:
    """How many results queries with these windows have in total, given the ages of all pairs in order.

    >>> wanted_by((1, 3), np.array([0, 1, 2, 3]))
    6
    """
    return int(np.searchsorted(ages, np.array(windows), side="right").sum())


def equal_windows(count: int, total: int, ages: Ages) -> tuple[int, ...]:
    """So many windows, the longest of them `LONGEST`, that have `total` results together, as nearly as can be.

    >>> ages = np.sort(np.random.default_rng(0).integers(0, LONGEST, 10_000))
    >>> wanted_by(equal_windows(1_000, 55_000, ages), ages)
    55000
    """
    low, high = count, LONGEST - 1
    while low < high:
        middle = (low + high) // 2
        enough = wanted_by(windows_of(count, middle), ages) >= total
        low, high = (low, middle) if enough else (middle + 1, high)
    return windows_of(count, low)


def scaling(modes: Sequence[str], wanted: Sequence[int], pace: Pace) -> Iterator[Scaling]:
    """Every mode, with about so many results a step in total; the last number is the one that is required."""
    few = uniform(FEW)
    for results in wanted:
        # 2 rate^2 window / keys results a second and query.
        rate = round(math.sqrt(results * KEYS / (2 * sum(few) / 1e6)))
        feed = Feed(rate, 1 / KEYS)
        steps = [feed.next(seconds) for seconds in pace.ticks()]
        ages = _ages(steps, len(steps) - pace.measured)
        sets = {FEW: few, MANY: equal_windows(MANY, wanted_by(few, ages), ages)}
        for mode in modes:
            yield _run(mode, sets, steps, rate, pace.measured, results == wanted[-1])


def _ages(steps: Sequence[Mapping[str, pa.Table]], measured_from: int) -> Ages:
    """The ages, in order, of all pairs of the longest window whose later row comes in a measured step."""
    tables = {stream: pa.concat_tables([step[stream] for step in steps]) for stream in STREAMS}
    first = sum(step["A"].num_rows for step in steps[:measured_from])
    with duckdb.connect() as connection:
        for stream, table in tables.items():
            connection.register(stream, table)
        pairs = f"""SELECT abs(epoch_us(A.ts) - epoch_us(B.ts)) AS age FROM A JOIN B ON A.k = B.k
                    WHERE greatest(A.id, B.id) >= {first}"""
        found = connection.execute(f"SELECT age FROM ({pairs}) WHERE age <= {LONGEST} ORDER BY age").fetchnumpy()
    return np.asarray(found["age"], np.int64)


def _run(
    mode: str, sets: Mapping[int, Sequence[int]], steps: Sequence[Mapping[str, pa.Table]], rate: int, measured: int,
    required: bool,
) -> Scaling:  # fmt: skip
    engines = {
        count: engine_for(mode, {f"q{n}": sql(w) for n, w in enumerate(windows)}) for count, windows in sets.items()
    }
    seconds: dict[int, list[float]] = {count: [] for count in sets}
    results = dict.fromkeys(sets, 0)
    for number, tables in enumerate(steps):
        for count in sets if number % 2 else reversed(sets):
            took, found = timed_push(engines[count], tables)
            if number >= len(steps) - measured:
                seconds[count].append(took)
                results[count] += sum(table.num_rows for table in found.values())
    if abs(results[MANY] / results[FEW] - 1) > TOLERANCE:
        raise ValueError(f"{results[FEW]:,} results are not {results[MANY]:,} within a percent")
    each = (results[FEW] // measured, results[MANY] // measured)
    return Scaling(mode, FEW, MANY, rate, each, tuple(seconds[FEW]), tuple(seconds[MANY]), required)
