"""The input of job.toml: a file for each stream, in the folder `in` where you run this."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write(stream: str, name: str, ids: list[int], seconds: list[int]) -> None:
    times = pa.array([s * 10**6 for s in seconds], pa.timestamp("us"))
    Path(f"in/{stream}").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids, "ts": times}), f"in/{stream}/{name}.parquet")


write("orders", "first", [1, 2, 3], [1, 2, 3])
write("payments", "first", [1, 2], [4, 5])
write("refunds", "first", [2, 9], [8, 30])
