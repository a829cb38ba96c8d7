"""The engine under the two queries of Wang ch. 6: what it examined and held, in one way of sharing.

In: the ratios m and n of the queries' windows, and a way of sharing. Out: operations and tuples in states.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from midstream.embedded import Engine
from midstream.model.ids import StateKind

LOWER, UPPER, COUNTED = 20, 10, 10
"""The wider windows in seconds, in Table 6.2's proportion, and the seconds that are counted once both are full."""

ROWS, PARTS = 20, 10
"""Rows a second of each stream; a join is a nested loop, as in §6.4, and one pair in so many joins (Table 6.2)."""

FILTERS = ("{0}.v < 0.25", "{0}.v > 0.05 AND {0}.v < 0.3")
"""Filters of a quarter of the rows, of which four fifths pass the other's as well (Table 6.2)."""


@dataclass(frozen=True)
class TreeTally:
    """Counts of a run: pairs examined, rows and results held against filters and windows, rows purged.

    `tuples` is the mean of the tuples in the states of the joins; a pair is two, as in M_t of §6.3.
    """

    examined: int
    tested: int
    purged: int
    tuples: float

    @property
    def operations(self) -> int:
        """One comparison each, as in §6.4."""
        return self.examined + self.tested + self.purged


@lru_cache(maxsize=64)
def tree_tally(m: float, n: float, sharing: str) -> TreeTally:
    """Run both queries; Q_1's lower windows are `m` times Q_2's, Q_2's upper window is `n` times Q_1's."""
    engine, random = Engine(sharing=sharing), np.random.default_rng(6)
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, v DOUBLE, ts TIMESTAMP", timestamp="ts")
    joins = " AND ".join(f"({one}.k + {other}.k) % {PARTS} < 1" for one, other in ("AB", "BC"))
    for number, (condition, lower, upper) in enumerate(zip(FILTERS, (m, 1.0), (1.0, n), strict=True), 1):
        seconds = {"A": LOWER * lower, "B": LOWER * lower, "C": UPPER * upper}
        sizes = ", ".join(f"{name} [RANGE {round(1_000 * size)} MILLISECONDS]" for name, size in seconds.items())
        where = "".join(f" AND {condition.format(name)}" for name in seconds)
        sql = f"SELECT A.k AS k FROM {sizes} WHERE {joins}{where}"
        engine.add_query(f"q{number}", sql, plan="((A B) C)")
    before, held = (0, 0, 0), list[int]()
    for second in range(LOWER + 1 + COUNTED):
        if second == LOWER + 1:
            before = _counted(engine)
        engine.push({name: _rows(random, second) for name in "ABC"})
        if second > LOWER:
            held.append(_tuples(engine))
    examined, tested, purged = (now - then for now, then in zip(_counted(engine), before, strict=True))
    return TreeTally(examined, tested, purged, sum(held) / len(held))


def _rows(random: np.random.Generator, second: int) -> pa.Table:
    times = np.sort(second * 1_000_000 + random.integers(0, 1_000_000, ROWS))
    keys, values = random.integers(0, PARTS, ROWS), random.random(ROWS)
    return pa.table({"k": keys, "v": values, "ts": pa.array(times, pa.timestamp("us"))})


def _counted(engine: Engine) -> tuple[int, int, int]:
    counted = {key.operator: one for key, one in engine.manifest.operators.items() if key.operator.slice is None}
    return (
        sum(one.comparisons for one in counted.values()),
        sum(one.predicates for one in counted.values()),
        # Base rows are purged from the states of the joins that they are in.
        sum(one.purged for id, one in counted.items() if not id.name.endswith(f".{StateKind.ROWS.value}")),
    )


def _tuples(engine: Engine) -> int:
    # Join states are kept under their index; the base rows below them do not count.
    return sum(
        listing.live * len(id.owner.split("+"))
        for lane in engine.manifest.lane_states.values()
        for id, listing in lane.states.items()
        if id.kind is not StateKind.ROWS
    )
