"""W1 (a) by number of partitions and kind of key: `python -m benchmarks.partitions [--rounds 2] [--quick]`.

Three streams of 20,000 rows a batch are joined on one key, by a job on Spark that has as many tasks at once, lanes and
partitions as the row says, with keys of whole numbers and of texts. Each runs in a process of its own; every second
round runs in the opposite order. Asked: 4 partitions on two cores are no slower than 2, and 8 and 16 do the same rows a
second within 15 %. Batches of 600 rows beside the floor are `python -m benchmarks.trickle`. Prints the table; ends with
1 if the counts or hashes of answers differ, or if what is asked is missed, except with `--quick`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from benchmarks.measurement import Measurement
from benchmarks.peers import Task, midstream_spark
from benchmarks.peers.session import session
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.base import Scenario
from benchmarks.table import table
from benchmarks.verdict import Verdict, verdict_table

PARTITIONS = (2, 4, 8, 16)
LEAST = {4: 1.0, 8: 0.85, 16: 0.85}
"""Rows a second by those of two partitions, at least."""


@dataclass(frozen=True)
class TextKeys(Scenario):
    """A scenario whose keys are texts of ten letters."""

    @override
    def schema(self, stream: str) -> pa.Schema:
        fields = super().schema(stream)
        return pa.schema([pa.field(f.name, pa.string()) if f.name in self.streams[stream] else f for f in fields])

    @override
    def spark_schema(self, stream: str) -> str:
        return super().spark_schema(stream).replace("BIGINT", "STRING")

    @override
    def table(self, stream: str, batch: int) -> pa.Table:
        numbers = Scenario(**self.__dict__).table(stream, batch)
        for place, key in enumerate(self.streams[stream]):
            texts = pc.utf8_lpad(numbers.column(key).cast(pa.string()), 10, "k")
            numbers = numbers.set_column(place, key, texts)
        return numbers


def measure(scenario: Scenario, partitions: int, source: Path) -> Measurement:
    """Run the job with so many partitions; in a process of its own."""
    with tempfile.TemporaryDirectory(dir=source.parent) as work:
        task = Task(scenario, source, Path(work))
        spark = session(task.work, {"spark.master": f"local[{partitions}]"})
        try:
            checkpoint = str(task.work / "checkpoint")
            return midstream_spark.run_in(spark, task, f"{partitions} partitions", checkpoint, lanes=partitions)
        finally:
            spark.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say whether what is asked is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="show that it runs and agrees; its times mean nothing")
    options = parser.parse_args(arguments)
    whole = SCENARIOS["w1a"].quick() if options.quick else SCENARIOS["w1a"]
    kinds = {"whole numbers": whole, "texts": TextKeys(**whole.__dict__)}
    rows, verdicts, differ = [], list[Verdict](), False
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        for number, (kind, scenario) in enumerate(kinds.items()):
            source, found = Path(folder) / str(number), dict[int, list[Measurement]]()
            scenario.write(source)
            for turn in range(1 if options.quick else options.rounds):
                for partitions in PARTITIONS if turn % 2 == 0 else reversed(PARTITIONS):
                    with ProcessPoolExecutor(1, get_context("spawn")) as process:
                        measured = process.submit(measure, scenario, partitions, source).result()
                    found.setdefault(partitions, []).append(measured)
            differ = differ or len({one.answer for every in found.values() for one in every}) > 1
            rates = {partitions: median(one.steady_rate for one in every) for partitions, every in found.items()}
            for partitions in PARTITIONS:
                ratio, results = rates[partitions] / rates[2], found[partitions][0].answer.rows
                rows.append((kind, str(partitions), f"{rates[partitions]:,.0f}", f"{ratio:.2f}", f"{results:,}"))
                if partitions in LEAST:
                    least, what = LEAST[partitions], f"keys of {kind}, {partitions} partitions by 2"
                    verdicts.append(Verdict(what, f"{ratio:.2f}", f"at least {least}", ratio >= least))
    print(table(("keys", "partitions", "rows a second", "by those of 2", "results"), "lrrrr", rows))
    print(verdict_table(verdicts))
    if differ:
        print("WRONG  the answers differ")
    return 1 if differ or not (options.quick or all(one.met for one in verdicts)) else 0


if __name__ == "__main__":
    sys.exit(main())
