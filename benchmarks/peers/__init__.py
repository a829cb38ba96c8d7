"""Who is measured: each peer takes a scenario and answers with a measurement."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import Measurement
from benchmarks.peers.question import Question


@dataclass(frozen=True)
class Task:
    """One run of a peer: what to compute, where the input lies (Parquet), and a folder of its own."""

    scenario: Question
    source: Path
    work: Path


PEERS: dict[str, tuple[str, str]] = {
    "duckdb_1": ("DuckDB, offline, 1 thread", "duckdb_offline:one_thread"),
    "embedded": ("midstream embedded, 1 thread", "midstream_embedded:run"),
    "embedded_2": ("midstream embedded, 2 lanes in 2 threads", "midstream_embedded:two_threads"),
    "duckdb_2": ("DuckDB, offline, 2 threads", "duckdb_offline:two_threads"),
    "midstream_spark": ("midstream on Spark, local[2]", "midstream_spark:run"),
    "midstream_s3": ("midstream on Spark, checkpoint on an S3 server here", "midstream_spark:on_an_object_store"),
    "midstream_spark_folder": ("midstream on Spark, tasks read the folder", "midstream_spark:of_a_folder"),
    "former_lane": ("midstream of 2026-11-22, before there were spreads (d4b7fae)", "former_lane:run"),
    "midstream_spark_unsynced": ("midstream on Spark, nothing synced to the disk", "midstream_spark:unsynced"),
    "spark_default": ("Spark's own join, default state store", "spark_native:default_store"),
    "spark_tuned": ("Spark's own join, default state store, tuned files", "spark_native:tuned_files"),
    "spark_rocksdb": ("Spark's own join, RocksDB", "spark_native:rocksdb"),
    "flink": ("Flink, 2 tasks, state on the heap", "flink:heap"),
    "flink_1": ("Flink, 1 task, state on the heap", "flink:one_task"),
    "flink_rocksdb": ("Flink, 2 tasks, RocksDB", "flink:rocksdb"),
}
"""Every peer: its title, and the function that runs it (loaded only in the process that runs it)."""

BY_NAME = frozenset(
    {"midstream_spark_unsynced", "midstream_spark_folder", "former_lane", "flink", "flink_1", "flink_rocksdb"}
)
"""Peers that run only where somebody names them: variants of others, and those that need another environment."""


def peer(name: str) -> Callable[[Task], Measurement]:
    """The function of a peer."""
    module, function = PEERS[name][1].split(":")
    found: Callable[[Task], Measurement] = getattr(importlib.import_module(f"benchmarks.peers.{module}"), function)
    return found
