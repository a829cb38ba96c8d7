"""A job on a cluster: `python -m tests.spark.cluster_job MASTER CHECKPOINT ANSWERS STEPS`.

Its rows come from Spark itself, the same for every run, so that no folder is needed that all machines see.
"""

from __future__ import annotations

import sys

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import midstream as ms
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.property.drive import Case

ROWS, BEGIN = 60, 1_700_000_000
KEYS = {"A": 37, "B": 41, "C": 29}
CHAIN = QuerySpec(
    tuple(SourceSpec(name, name, range=3 * SECOND) for name in "ABC"),
    (Item("A.v", "a"), Item("B.v", "b"), Item("C.v", "c")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
SCHEMA = pa.schema([("v", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
STREAMS = tuple(StreamSpec(name, SCHEMA, "ts", 0, None) for name in KEYS)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "700m",
    "spark.executor.cores": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.decommission.enabled": "true",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.task.maxFailures": "8",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
"""Tasks are done twice whenever one takes longer than another, and executors may be taken away in order."""


def case(steps: int) -> Case:
    """What the job reads in so many steps, and its query."""
    return Case(STREAMS, tuple(_step(number) for number in range(steps)), (Lifetime("chain", CHAIN),))


def _step(number: int) -> dict[str, pa.Table]:
    values = list(range(number * ROWS, (number + 1) * ROWS))
    times = pa.array([(BEGIN + number) * SECOND] * ROWS, pa.int64()).cast(SCHEMA.field("ts").type)
    columns = {name: pa.array([value % keys for value in values]) for name, keys in KEYS.items()}
    return {name: pa.table([pa.array(values), keys, times], schema=SCHEMA) for name, keys in columns.items()}


def main(master: str, checkpoint: str, answers: str, steps: int) -> None:
    """Run it up to that many steps."""
    builder: SparkSession.Builder = SparkSession.builder.master(master).appName("cluster")
    spark = builder.config(map=dict(SETTINGS)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    job = ms.Job(spark, checkpoint, lanes=2)
    for name, keys in KEYS.items():
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2)
        frame = rows.option("startTimestamp", BEGIN * 1000).load()
        frame = frame.select(
            F.col("value").alias("v"), (F.col("value") % keys).alias("k"), F.col("timestamp").alias("ts")
        )
        job.stream(name, frame, timestamp="ts")
    job.query("chain", CHAIN.cql(), "((A B) C)", ms.sinks.files(answers))
    run = job.start({"processingTime": "0 seconds"}, take_over=True)
    while not run.await_termination(0.05):
        if run.events and run.events[-1].step >= steps - 1:
            run.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
