"""Streams that drift, for an embedded engine that looks after its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.model.events import Event, PlanReviewed

SECOND = 1_000_000
COLUMNS = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])


def engine(names: str = "ABC", plan: str | None = None, seed: int = 0, **options: object) -> ms.Engine:
    """An engine with one query `q` that joins these streams by their key."""
    made = ms.Engine(seed=seed, **options)  # type: ignore[arg-type]
    for name in names:
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.add_query("q", query(names), plan=plan)
    return made


def query(names: str, window: int = 10) -> str:
    equal = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(names))
    return f"SELECT {names[0]}.k FROM {', '.join(names)} WHERE {equal} WINDOW {window} SECONDS"


def rows(step: int, keys: Mapping[str, int], rate: int = 60, seed: int = 0) -> dict[str, pa.Table]:
    """A second of each stream: keys are drawn from 0 up to so many."""
    rng = np.random.default_rng([seed, step])
    found = {}
    for name, spread in keys.items():
        times = np.sort(rng.integers(step * SECOND, (step + 1) * SECOND, rate))
        found[name] = pa.table({"k": rng.integers(0, spread, rate), "ts": pa.array(times, pa.timestamp("us"))})
    return found


BAD_FIRST = {"A": 10, "B": 10, "C": 300}
"""Where A and B are joined first, much is joined in vain."""

GOOD_FIRST = {"A": 300, "B": 10, "C": 10}


def run(made: ms.Engine, steps: Sequence[int], keys: Mapping[str, int] = BAD_FIRST, **shape: int) -> None:
    for step in steps:
        made.push(rows(step, keys, **shape))


def reviews(events: Sequence[Event]) -> list[PlanReviewed]:
    return [event for event in events if isinstance(event, PlanReviewed)]
