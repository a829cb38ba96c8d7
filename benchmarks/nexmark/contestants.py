"""Who answers: two processes that stay, one held to one core and one with a Spark session, so that all are warm."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.measurement import Measurement
from benchmarks.nexmark.questions import QUESTIONS
from benchmarks.peers import Task, duckdb_offline, midstream_embedded, midstream_spark, spark_native
from benchmarks.peers.session import session

ON_SPARK = ("midstream_spark", "spark_default")
ON_ONE_CORE = ("embedded", "duckdb_1")

Answering = Callable[[Task], Measurement]


def on_spark(peer: str) -> Answering:
    """A peer in the one session of this process."""

    def answer(task: Task) -> Measurement:
        spark = _session()
        if peer == "spark_default":
            return spark_native.run_in(spark, task, peer)
        found = midstream_spark.run_in(spark, task, peer, str(task.work / "checkpoint"))
        if task.scenario.spark:
            return found
        spark_native.declare(spark, task)
        return replace(found, notes={"refused": spark_native.refusal(spark, task)})

    return answer


def measured(peer: str, name: str, quick: bool, folder: Path) -> Measurement:
    """What a peer did with a query, in a folder that has the `input`; runs in the peer's process."""
    one_core = {"embedded": midstream_embedded.run, "duckdb_1": duckdb_offline.one_thread}
    answer = one_core[peer] if peer in one_core else on_spark(peer)
    question = QUESTIONS[name].quick() if quick else QUESTIONS[name]
    with tempfile.TemporaryDirectory(dir=folder) as work:
        return answer(Task(question, folder / "input", Path(work)))


def process() -> ProcessPoolExecutor:
    """A process of its own, begun at its first task."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


@cache
def _session() -> SparkSession:
    return session(Path(tempfile.mkdtemp(prefix="midstream-nexmark-")))
