"""Spark's own join, and DuckDB over everything at once, as `benchmarks.run` measures them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import Task, peer
from benchmarks.ring.contestants import Contestant
from benchmarks.ring.load import Load
from benchmarks.ring.record import Record
from benchmarks.ring.scenarios import RingScenario


def run(asked: RingScenario, contestant: Contestant, load: Load, folder: Path, host: str) -> Record:
    """Measure a peer; what Spark says to the question as it was asked is the note `refused` of the measurement."""
    scenario = asked.on(host, load.quick)
    scenario.write(folder / "in")
    return Record(contestant, peer(contestant.name)(Task(scenario, folder / "in", folder)))
