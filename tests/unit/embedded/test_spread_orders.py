"""Execution orders (Wang §15.2) on a running ring: a step is a set, so that its rows may stand in any order.

Tuple at a time, the ring loses results in unordered execution (figure wang_15_02 of the lab). Here a step's rows are
placed and probed together, by event time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from tests.unit.building import SECOND

SQL = "SELECT A.x AS a, C.x AS c FROM A, B, C WHERE A.x * B.x > 20 AND C.x - B.x BETWEEN 0 AND 1 WINDOW 6 SECONDS"


def steps() -> list[dict[str, pa.Table]]:
    rng, found = np.random.default_rng(15), []
    for step in range(12):
        times = [np.sort(rng.integers(2 * step * SECOND, 2 * (step + 1) * SECOND, 12)) for _ in "ABC"]
        found.append(
            {
                name: pa.table({"x": rng.integers(0, 9, 12), "ts": pa.array(ts, pa.timestamp("us"))})
                for name, ts in zip("ABC", times, strict=True)
            }
        )
    return found


def ran(scheme: str, given: list[dict[str, pa.Table]]) -> tuple[list[list[str]], object]:
    made = ms.Engine(seed=3)
    for name in "ABC":
        made.create_stream(name, "x BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", SQL, spread=scheme, nodes=4, plan="[A: B C | B: A C | C: B A]")
    answers = [sorted(map(str, made.push(tables)["q"].to_pylist())) for tables in given]
    spread = made.manifest.queries["q"].nodes
    assert spread is not None
    return answers, (spread.work, spread.sent, spread.routes)


@pytest.mark.parametrize("scheme", ["psp", "psp_i", "psp_d"])
def test_rows_of_a_step_in_any_order_give_equal_answers_and_equal_work(scheme: str) -> None:
    ordered, rng = steps(), np.random.default_rng(2)
    semi = [dict(reversed(tables.items())) for tables in ordered]
    unordered = [
        {name: rows.take(rng.permutation(rows.num_rows)) for name, rows in tables.items()} for tables in ordered
    ]
    expected = ran(scheme, ordered)
    assert sum(map(len, expected[0])) > 100
    assert ran(scheme, semi) == expected
    assert ran(scheme, unordered) == expected
