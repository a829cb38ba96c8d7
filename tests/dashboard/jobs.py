"""Engines whose dashboards tests look at: every push is a step that the test decides about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import midstream as ms

SECOND = 1_000_000
SQL = "SELECT A.k, B.v FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 20 SECONDS"


@dataclass
class Played:
    """An engine of four streams, and the second of event time that it has come to."""

    engine: ms.Engine
    seed: int = 1
    second: int = 0

    def push(self, steps: int = 1, **rows: int) -> None:
        """So many seconds of event time, a step each; `rows` says how many a stream has a second."""
        for _ in range(steps):
            draw = np.random.default_rng((self.seed, self.second))
            self.engine.push({stream: self._rows(draw, rows.get(stream, 20)) for stream in "ABCD"})
            self.second += 1

    def _rows(self, draw: np.random.Generator, count: int) -> pa.Table:
        times = np.sort(draw.integers(0, SECOND, count)) + self.second * SECOND
        columns = {"k": draw.integers(0, 100, count), "v": draw.random(count)}
        return pa.table({**columns, "ts": pa.array(times, pa.timestamp("us"))})


def played(folder: Path, sql: str = SQL, plan: str = "(((A B) C) D)", query: str = "q", lanes: int = 1) -> Played:
    engine = ms.Engine(checkpoint=folder, lanes=lanes, durable=False)
    for stream in "ABCD":
        engine.create_stream(stream, "k BIGINT, v DOUBLE, ts TIMESTAMP", timestamp="ts")
    engine.add_query(query, sql, plan=plan)
    return Played(engine)
