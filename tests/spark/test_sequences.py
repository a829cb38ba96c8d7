"""Drawn sequences of changes on Spark: no row is kept where what comes later does not look for it.

Spark deals rows by its own `xxhash64`, tasks and the driver by ours: the sequences come each way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.spread import Spread
from midstream.model.command import Command
from midstream.model.events import CommandRefused
from midstream.ring.spreading import spreadings
from tests.drawing import SOAK
from tests.property.sequences import Change, Sequence, drawn
from tests.spark.drive import Hooks, Place, finish, job, read_folder

FAST = (1, 2, 3, 6)
"""What `make test` runs."""

ALL = [seed for seed in range(600 if SOAK else 60) if seed not in FAST]


@dataclass(frozen=True)
class Branch(Place):
    """The folders of a job or of a fork: the input is common, `at` is where the others are."""

    at: Path

    @property
    def checkpoint(self) -> Path:
        return self.at / "checkpoint"

    def answers(self, query: str) -> Path:
        return self.at / "answers" / query


def command(change: Change) -> Command:
    what, given = change.what, change.arguments
    if what == "off":
        return Spread(str(given[0]), "off")
    made = {"spread": Spread, "rescale": Rescale, "reshare": Reshare, "migrate": Migrate}[what]
    return made(*given)


def run_on_spark(spark: SparkSession, hooks: Hooks, root: Path, sequence: Sequence) -> None:
    """Run a sequence as a job, which ends and begins again where it restarts or is forked; check every step."""
    case, branch = sequence.case, Branch(root, root / "job")
    for change in sequence.changes:
        if change.what not in ("restart", "fork"):
            hooks.give(change.step, command(change))
    ends = {change.step: change.what for change in sequence.changes if change.what in ("restart", "fork")}
    steps, places = len(case.steps), list[Branch]()
    for step in sorted({*ends, steps}):
        for at in range(len(places), step):
            for spec in case.streams:
                branch.feed(spec.name, at, case.steps[at].get(spec.name, spec.schema.empty_table()))
        made = job(spark, branch, case.streams, {}, lanes=sequence.lanes, durable=False)
        for life in case.queries:
            made.query(life.name, life.spec.cql(), None, ms.sinks.files(branch.answers(life.name)))
        events = finish(made).events
        assert not [event for event in events if isinstance(event, CommandRefused)]
        places += [branch] * (step - len(places))
        if ends.get(step) == "fork":
            forked = Branch(root, root / f"fork{step}")
            sinks = {life.name: ms.sinks.files(forked.answers(life.name)) for life in case.queries}
            ms.open(branch.checkpoint).fork(step - 1, forked.checkpoint, sinks)
            branch = forked
    for life in case.queries:
        found = [read_folder(place.answers(life.name) / f"step={step:08d}") for step, place in enumerate(places)]
        sequence.check(life.name, found)


@pytest.mark.parametrize("seed", FAST)
def test_every_step_is_the_oracle_s(spark: SparkSession, hooks: Hooks, tmp_path: Path, seed: int) -> None:
    run_on_spark(spark, hooks, tmp_path, drawn(seed))


@pytest.mark.property
@pytest.mark.parametrize("seed", ALL)
def test_every_step_of_more_sequences_is_the_oracle_s(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, seed: int
) -> None:
    run_on_spark(spark, hooks, tmp_path, drawn(seed))


@pytest.mark.timeout(7200)  # To draw a sequence is to run it once.
def test_the_sequences_do_everything() -> None:
    """Every scheme begins and ends, among few lanes and many, and everything else that moves rows happens."""
    done = [change for seed in (*FAST, *ALL) for change in drawn(seed).changes]
    assert {change.arguments[1] for change in done if change.what == "spread"} == set(spreadings())
    counts = Counter(change.what for change in done)
    assert min(counts[what] for what in ("off", "rescale", "reshare", "migrate", "restart", "fork")) >= 10, counts
