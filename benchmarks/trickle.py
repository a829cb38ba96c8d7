"""What a batch of few rows takes: `python -m benchmarks.trickle [--rounds 3] [--quick]`.

W1 with one small file of each stream a batch, by three in turns in one session of Spark: an empty `foreachBatch` over
the same sources, which is the floor of whatever calls Python for a batch; midstream on Spark; and Spark's own join. The
seconds are Spark's `triggerExecution` of steady batches. Required: a batch of 600 rows takes midstream at most 2.5
times what the floor takes. Writes benchmarks/TRICKLE.md, unless `--quick`; ends with 1 where that is not met or answers
differ.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from statistics import median, quantiles

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measurement import Answer, Batch, Measurement
from benchmarks.peers import Task, midstream_spark, spark_native
from benchmarks.peers.session import batches_of, session, source
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.table import table
from benchmarks.verdict import Verdict, verdict_table
from midstream.spark.session import QUERY_SETTINGS, settings

PAGE = Path(__file__).with_name("TRICKLE.md")

MOST, JUDGED = 2.5, 600
"""At most so many times the floor, by the medians of batches of so many rows."""

STREAMS = 3
BATCHES = {102: 12, 600: 12}
"""Batches of each round, by the rows of all streams in one."""

FLOOR, OURS, SPARKS = "an empty foreachBatch", "midstream on Spark", "Spark's own join"


def floor(spark: SparkSession, task: Task) -> Measurement:
    """An empty `foreachBatch` over the scenario's sources, with the settings that midstream gives its own query."""
    streams = [source(spark, task, stream) for stream in task.scenario.streams]
    writer = reduce(DataFrame.unionByName, streams).writeStream.foreachBatch(lambda batch, number: None)
    # Of batches that bring Spark no rows only those of queries that are named so are counted.
    writer = writer.queryName("midstream's floor").option("checkpointLocation", str(task.work / "checkpoint"))
    with settings(spark, QUERY_SETTINGS):
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    batches = batches_of(query)
    return Measurement(FLOOR, task.scenario.name, batches[: task.scenario.batches], Answer(0, ""))


def ours(spark: SparkSession, task: Task) -> Measurement:
    """midstream's job."""
    return midstream_spark.run_in(spark, task, OURS, str(task.work / "checkpoint"))


def sparks(spark: SparkSession, task: Task) -> Measurement:
    """Spark's own join, with its default state store."""
    return spark_native.run_in(spark, task, SPARKS)


PEERS: Mapping[str, Callable[[SparkSession, Task], Measurement]] = {FLOOR: floor, OURS: ours, SPARKS: sparks}


@dataclass
class Found:
    """The steady batches of every peer at one size, of all rounds, and the answers of the last."""

    rows: int
    batches: dict[str, list[Batch]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)

    def add(self, measured: Measurement) -> None:
        """Take in what a peer did in one round."""
        self.batches.setdefault(measured.peer, []).extend(measured.steady)
        self.answers[measured.peer] = measured.answer

    def median(self, peer: str) -> float:
        """The median milliseconds of a batch."""
        return 1e3 * median(batch.seconds for batch in self.batches[peer])

    def most(self, peer: str) -> float:
        """The milliseconds that 95 of 100 batches take at most."""
        return 1e3 * quantiles([batch.seconds for batch in self.batches[peer]], n=20, method="inclusive")[-1]

    @property
    def agree(self) -> bool:
        """Whether midstream and Spark have answered alike."""
        return self.answers[OURS] == self.answers[SPARKS]


def scenario_of(rows: int, batches: int) -> Scenario:
    """W1 with so many rows a batch; each has some partners, as in the whole one."""
    each = rows // STREAMS
    return replace(SCENARIOS["w1a"], name=f"w1_{rows}", rows=each, keys=each, batches=batches)


def measure(sizes: Mapping[int, int], rounds: int) -> list[Found]:
    """Every peer at every size, each round in another turn; a first one warms the machine and does not count."""
    found = []
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        spark = session(Path(folder))
        for rows, batches in sizes.items():
            scenario, source, here = scenario_of(rows, batches), Path(folder) / f"in{rows}", Found(rows)
            scenario.write(source)
            for number in range(rounds + 1):
                names = list(PEERS)
                for name in names[number % len(names) :] + names[: number % len(names)]:
                    work = Path(folder) / f"{rows}-{number}-{names.index(name)}"
                    work.mkdir()
                    measured = PEERS[name](spark, Task(scenario, source, work))
                    if number:
                        here.add(measured)
            found.append(here)
            print(page(found), flush=True)
        spark.stop()
    return found


def verdict(found: Found) -> Verdict:
    """Whether midstream is as near the floor as is required."""
    ratio = found.median(OURS) / found.median(FLOOR)
    what = f"a batch of {found.rows} rows, by the floor"
    return Verdict(what, f"{ratio:.2f}", f"at most {MOST}", ratio <= MOST)


def page(found: Sequence[Found]) -> str:
    """The page: a row for each size and peer, and the verdict."""
    rows = [
        (str(one.rows), peer, f"{one.median(peer):.0f}", f"{one.most(peer):.0f}",
         f"{one.median(peer) / one.median(FLOOR):.2f}", str(len(one.batches[peer])))
        for one in found for peer in PEERS
    ]  # fmt: skip
    names = ("rows a batch", "what runs", "median, ms", "95 of 100 within, ms", "by the floor", "batches")
    load, today = os.getloadavg()[1], datetime.datetime.now(datetime.UTC).date()
    return (
        "# Batches of few rows\n\n"
        f"`python -m benchmarks.trickle`, {today}, {os.cpu_count()} cores, load of 5 minutes {load:.1f}: W1 with one "
        "small file of each stream a\nbatch, three in turns in one session. The floor is an empty `foreachBatch` over "
        "the same sources.\n\n"
        f"{table(names, 'rlrrrr', rows)}\n"
        f"{verdict_table(verdict(one) for one in found if one.rows == JUDGED)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and say whether what is required is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="show that it runs and agrees; its times mean nothing")
    options = parser.parse_args(arguments)
    found = measure({JUDGED: 4} if options.quick else BATCHES, 1 if options.quick else options.rounds)
    if not all(one.agree for one in found):
        print("WRONG  the answers differ")
        return 1
    if options.quick:
        return 0
    PAGE.write_text(page(found))
    return 0 if all(verdict(one).met for one in found if one.rows == JUDGED) else 1


if __name__ == "__main__":
    sys.exit(main())
