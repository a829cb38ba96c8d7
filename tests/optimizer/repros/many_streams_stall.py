# ruff: noqa
"""A join of many streams: the optimizer's default review ('suggest') holds push() up: 20 streams 0.7 s, 32: 3.3 s, 40: ?, 60: 31.7 s
(docs/optimizer.md: a review waits until it is at most 3 % of the queries' work; these 12 pushes worked 0.3 s). No event says so.
usage: fail_many_streams_stall.py [streams]"""

import sys, time, pyarrow as pa, midstream as ms

n = int(sys.argv[1]) if len(sys.argv) > 1 else 40
e = ms.Engine()
for i in range(n):
    e.create_stream(f"s{i}", "k BIGINT, ts TIMESTAMP", timestamp="ts")
e.add_query(
    "q",
    "SELECT s0.k FROM "
    + ", ".join(f"s{i}" for i in range(n))
    + " WHERE "
    + " AND ".join(f"s{i}.k=s{i + 1}.k" for i in range(n - 1))
    + " WINDOW 100 SECONDS",
)
took = []
for i in range(14):
    t = time.time()
    e.push({f"s{j}": pa.table({"k": [i], "ts": pa.array([i * 10**6], pa.timestamp("us"))}) for j in range(n)})
    took.append(time.time() - t)
print(
    n,
    "streams: longest push",
    round(max(took), 2),
    "s at step",
    took.index(max(took)),
    "; all others together",
    round(sum(took) - max(took), 2),
    "s",
)
