"""Change the plan of a running three-way join, and see what it pays. Run: python examples/quickstart.py."""

import numpy as np
import pyarrow as pa

import midstream as ms

engine = ms.Engine()
for stream in ("orders", "payments", "refunds"):
    engine.create_stream(stream, "id BIGINT, ts TIMESTAMP", timestamp="ts")
engine.add_query(
    "paid_and_refunded",
    """SELECT orders.id, _ts FROM orders, payments, refunds
       WHERE orders.id = payments.id AND payments.id = refunds.id WINDOW 20 SECONDS""",
    plan="((orders payments) refunds)",
)
random = np.random.default_rng(0)


def rows(step: int, count: int) -> pa.Table:
    times = np.sort(random.integers(step * 10_000_000, (step + 1) * 10_000_000, count))
    return pa.table({"id": random.integers(0, 20_000, count), "ts": pa.array(times, pa.timestamp("us"))})


for step in range(8):
    if step == 5:  # refunds are rare: join them first, without stopping
        engine.migrate("paid_and_refunded", plan="(orders (payments refunds))", strategy="moving_state")
    counts = {"orders": 20_000, "payments": 20_000, "refunds": 200}
    results = engine.push({stream: rows(step, count) for stream, count in counts.items()})
    comparisons = [e.comparisons for e in engine.events if isinstance(e, ms.events.StepDone)][-1]
    print(f"step {step}: {results['paid_and_refunded'].num_rows:5} results, {comparisons:7,} comparisons")
