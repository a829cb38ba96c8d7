"""What a hop costs on Spark beyond its work: steps of hardly any rows, and a bare stage of Spark's own, in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.peers.session import session
from benchmarks.ring import spark
from benchmarks.ring.contestants import NO_SPREAD, TOGETHER, Contestant
from benchmarks.ring.load import Load
from benchmarks.ring.record import HopCost
from benchmarks.ring.scenarios import ASKED_OF_HOPS, ROWS_OF_HOPS, SCENARIOS, RingScenario

SPREAD = "hash_hops"
BARE = (1, 5)
"""Numbers of stages whose times are compared."""


def hop_cost(load: Load) -> HopCost:
    """Measure, in as many rounds as turns are needed for a median."""
    asked, rounds = tiny(), 1 if load.quick else 3
    hops = len(asked.scenario.streams) - 1
    steps: dict[Contestant, list[float]] = {NO_SPREAD: [], Contestant(SPREAD, nodes=TOGETHER): []}
    bare = []
    for _ in range(rounds):
        for contestant, seconds in steps.items():
            with tempfile.TemporaryDirectory(prefix="midstream-hop-") as folder:
                record = spark.run(asked, contestant, replace(load, quick=False), Path(folder))
            seconds += [batch.seconds for batch in record.measurement.steady]
        with tempfile.TemporaryDirectory(prefix="midstream-hop-") as folder:
            bare.append(bare_stage(session(Path(folder)), rounds=5))
    without, spread = (median(seconds) for seconds in steps.values())
    return HopCost(hops, without, spread, median(bare))


def tiny() -> RingScenario:
    """A join of five streams that hardly bring a row."""
    asked = SCENARIOS[ASKED_OF_HOPS]
    return replace(asked, scenario=replace(asked.scenario, rows=ROWS_OF_HOPS, keys=ROWS_OF_HOPS), schemes=(SPREAD,))


def bare_stage(spark: SparkSession, rounds: int) -> float:
    """Seconds of one more stage in which Python hands on the two rows that it gets; the session is stopped."""
    seconds: dict[int, list[float]] = {stages: [] for stages in BARE}
    try:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        for number in range(rounds + 2):
            for stages, found in seconds.items():
                frame = spark.range(0, 2, 1, 2).selectExpr("cast(id AS int) AS `to`", "'' AS body")
                for _ in range(stages):
                    frame = frame.repartitionById(2, F.col("to")).mapInArrow(_handed_on, frame.schema)
                begun = time.perf_counter()
                frame.collect()
                if number > 1:
                    found.append(time.perf_counter() - begun)
    finally:
        spark.stop()
    few, many = (median(found) for found in seconds.values())
    return (many - few) / (BARE[1] - BARE[0])


def _handed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
