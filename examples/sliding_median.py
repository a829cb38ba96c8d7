"""A user's own operator on top of a join: the sliding median of HybMig §5.3, and its move to another version."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import pyarrow as pa

import midstream as ms

RESULT = pa.schema([("ts", pa.timestamp("us", "UTC")), ("median", pa.float64())])


class SlidingMedian:
    """After each row, the median of `column` over all rows that hold at its time."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.rows: list[tuple[int, float]] = []  # (last microsecond, value), in order of the former

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """One median for each row."""
        times = rows["_ts"].cast(pa.int64()).to_pylist()
        ends = rows["_until"].cast(pa.int64()).to_pylist()
        medians = []
        for time, end, value in zip(times, ends, rows[self.column].to_pylist(), strict=True):
            del self.rows[: bisect_left(self.rows, (time, float("-inf")))]  # what no longer holds
            insort(self.rows, (end, float(value)))
            medians.append(self.median())
        return pa.table([rows["_ts"], pa.array(medians, pa.float64())], schema=RESULT)

    def median(self) -> float:
        """The median now."""
        values = sorted(value for _, value in self.rows)
        middle = len(values) // 2
        return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2

    def snapshot(self) -> Any:
        """The rows that hold."""
        return self.rows

    def restore(self, snapshot: Any) -> None:
        """The same rows."""
        self.rows = [(end, value) for end, value in snapshot]


class SortedMedian(SlidingMedian):
    """The same answers by another way: the values are kept sorted, so that a median is looked up."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.values: list[float] = []

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """One median for each row."""
        times = rows["_ts"].cast(pa.int64()).to_pylist()
        ends = rows["_until"].cast(pa.int64()).to_pylist()
        medians = []
        for time, end, value in zip(times, ends, rows[self.column].to_pylist(), strict=True):
            gone = bisect_left(self.rows, (time, float("-inf")))
            for _, old in self.rows[:gone]:
                del self.values[bisect_left(self.values, old)]
            del self.rows[:gone]
            insort(self.rows, (end, float(value)))
            insort(self.values, float(value))
            medians.append(self.median())
        return pa.table([rows["_ts"], pa.array(medians, pa.float64())], schema=RESULT)

    def median(self) -> float:
        """The median now."""
        middle = len(self.values) // 2
        return self.values[middle] if len(self.values) % 2 else (self.values[middle - 1] + self.values[middle]) / 2

    def restore(self, snapshot: Any) -> None:
        """The same rows, and their values sorted."""
        super().restore(snapshot)
        self.values = sorted(value for _, value in self.rows)


def main() -> None:
    """Orders meet payments; the median of what was paid, first by one class, then by the other."""
    engine = ms.Engine()
    for name in ("orders", "payments"):
        engine.create_stream(name, "id BIGINT, amount DOUBLE, ts TIMESTAMP", timestamp="ts")
    sql = (
        "SELECT p.amount AS paid FROM orders AS o [RANGE 10 SECONDS], payments AS p [RANGE 10 SECONDS] "
        "WHERE o.id = p.id"
    )
    here = __name__ if __name__ != "__main__" else "sliding_median"
    engine.add_query("paid", sql, operator=f"{here}:SlidingMedian", operator_options={"column": "paid"})
    for step in range(30):
        if step == 15:
            engine.migrate("paid", strategy="gpt", operator=f"{here}:SortedMedian", operator_options={"column": "paid"})
        at = pa.array([step * 1_000_000], pa.timestamp("us"))
        rows = pa.table({"id": [step], "amount": [float(step * 37 % 11)], "ts": at})
        for row in engine.push({"orders": rows, "payments": rows})["paid"].to_pylist():
            print(f"{row['ts']:%M:%S}  median {row['median']:.1f}")
    for event in engine.events:
        if event.kind in ("migration_begun", "migration_ended"):
            print(event.kind, "at step", event.step)


if __name__ == "__main__":
    main()
