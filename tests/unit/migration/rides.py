"""A query ridden through steps of random rows, with migrations on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.model.events import Event

SECOND = 1_000_000


@dataclass
class Ride:
    """An engine over streams A to D with one query `q`; rows are the same for every ride of a seed."""

    plan: str
    streams: str = "ABCD"
    windows: str = ""
    seconds: int = 8
    keys: int = 9
    rows: int = 4
    seed: int = 0
    levels: bool = False
    engine: ms.Engine = field(default_factory=ms.Engine)
    found: list[Counter[tuple[Any, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in self.streams:
            self.engine.create_stream(name, "k BIGINT, j BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
        self.engine.add_query("q", self.sql, plan=self.plan)

    @property
    def sql(self) -> str:
        """Equal keys all along, or by turns k and j."""
        pairs = list(zip(self.streams, self.streams[1:], strict=False))
        on = [f"{a}.{'j' if self.levels and i % 2 else 'k'} = {b}.{'j' if self.levels and i % 2 else 'k'}"
              for i, (a, b) in enumerate(pairs)]  # fmt: skip
        select = ", ".join(f"{name}.v AS {name.lower()}" for name in self.streams)
        window = "" if self.windows else f" WINDOW {self.seconds} SECONDS"
        sources = self.windows or ", ".join(self.streams)
        return f"SELECT {select} FROM {sources} WHERE {' AND '.join(on)}{window}"

    def go(self, steps: int, moves: Mapping[int, tuple[str, str, dict[str, Any]]] | None = None) -> Ride:
        """Push so many steps of a second each; a move is (plan, strategy, options) before its step."""
        for number in range(len(self.found), len(self.found) + steps):
            if moves and number in moves:
                plan, strategy, options = moves[number]
                self.engine.migrate("q", plan, strategy, **options)
            self.found.append(rows_of(self.engine.push(self.batch(number))["q"]))
        return self

    def batch(self, number: int) -> dict[str, pa.Table]:
        """The rows of a step, in order of time."""
        random = np.random.default_rng([self.seed, number])
        tables = {}
        for name in self.streams:
            times = np.sort(random.integers(number * SECOND, (number + 1) * SECOND, self.rows))
            tables[name] = pa.table(
                {
                    "k": random.integers(0, self.keys, self.rows),
                    "j": random.integers(0, self.keys, self.rows),
                    "v": random.integers(0, 10**9, self.rows),
                    "ts": pa.array(times, pa.timestamp("us")),
                }
            )
        return tables

    @property
    def total(self) -> Counter[tuple[Any, ...]]:
        """All results."""
        return sum(self.found, Counter())

    def events(self, kind: type[Event]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.engine.events if isinstance(event, kind)]


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """A table as a multiset."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
