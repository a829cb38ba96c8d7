"""What a hop from task to task costs on Spark beyond its work: steps of hardly any rows, and bare stages, in turns."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

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
        for number in range(rounds + 2):
            for stages, found in seconds.items():
                begun = time.perf_counter()
                pairs = spark.sparkContext.parallelize([(0, b""), (1, b"")], 2)
                for _ in range(stages):
                    pairs = pairs.partitionBy(2, _as_it_is).mapPartitions(_handed_on)
                pairs.collect()
                if number > 1:
                    found.append(time.perf_counter() - begun)
    finally:
        spark.stop()
    few, many = (median(found) for found in seconds.values())
    return (many - few) / (BARE[1] - BARE[0])


def _handed_on(pairs: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return list(pairs)


def _as_it_is(to: int) -> int:
    return to
