# ruff: noqa
"""The work foreseen for a migration that follows another one within its window, beside what it really took.

Wanted: foreseen over real within 3 for every pair of strategies. Here it is up to 40 times too dear after jisc, 5 times after moving_state.
"""

import sys

import numpy as np
import pyarrow as pa

import midstream as ms

SQL = "SELECT A.k, A.v AS a, B.v AS b, C.v AS c, D.v AS d FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 20 SECONDS"


def rows(step):
    batch = {}
    for i, stream in enumerate("ABCD"):
        random = np.random.default_rng([0, step, i])
        times = np.sort(random.integers(step * 10**6, (step + 1) * 10**6, 8))
        batch[stream] = pa.table(
            {"k": random.integers(0, 40, 8), "v": np.arange(8) + step * 1000, "ts": pa.array(times, pa.timestamp("us"))}
        )
    return batch


worst = 1.0
for first in ("jisc", "hybmig", "moving_state", "gms"):
    engine = ms.Engine(sharing="off")
    for stream in "ABCD":
        engine.create_stream(stream, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", SQL, plan="(((A B) C) D)")
    engine.optimize("q", mode="off")
    steps = []
    for step in range(32):
        if step == 25:
            engine.migrate("q", plan="(((B C) A) D)", strategy=first)
        if step == 27:
            engine.migrate("q", plan="(A ((B D) C))", strategy="moving_state")
        before = engine.metrics()["comparisons"]
        engine.push(rows(step))
        steps.append(engine.metrics()["comparisons"] - before)
    usual = sorted(steps[18:25])[3]
    real = max(steps[27] - usual, 1)
    begun = [e for e in engine.events if type(e).__name__ == "MigrationBegun"]
    foreseen = begun[-1].detail["predicted"]["work"]
    worst = max(worst, foreseen / real, real / foreseen)
    print(f"after {first}: the second move took about {real:,} comparisons; foreseen {foreseen:,.0f}")
sys.exit(worst > 3)
