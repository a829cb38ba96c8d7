"""The README's table: `FLINK_PYTHON=PYTHON python -m benchmarks.readme [--only w1a]`, in some twenty minutes.

Each peer runs once, on the same batches, in a process of its own. The rate is that of the last half of the batches.
The first half is left out: Java's compilers take up to two fifths of its processor time in a job of midstream, and
windows are not full. A second table has the last half of the first batches, as a run that ends there gives it.
`FLINK_PYTHON` is the Python of an environment with apache-flink (see `benchmarks.peers.flink`); without it Flink's
column is empty. Prints the tables, Flink's variants, and what is asked, and without `--only` writes them to
COMPARED.md; ends with 1 if answers differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.compare import disagreements, value
from benchmarks.measurement import Measurement
from benchmarks.peers import flink
from benchmarks.report import machine
from benchmarks.run import measure
from benchmarks.scenarios import SCENARIOS
from benchmarks.table import table
from benchmarks.verdict import Verdict, verdict_table

JOINS = {
    "w1a": ("3-way, one key, 60,000 rows a batch", 10, 30),
    "w1b": ("3-way, one key, 600,000 rows a batch", 4, 12),
    "w2b": ("3-way, two keys, 600,000 rows a batch", 4, 12),
    "w3": ("band join, 4,000 rows a batch", 10, 40),
    "w4": ("tumbling aggregate, 600,000 rows a batch", 6, 24),
    "w5": ("left join, 400,000 rows a batch", 4, 12),
}
"""What the table calls each scenario, how many batches are the first, and how many run: Spark's own joins take the
most of the time.
"""

COMMON = ("midstream_spark", "midstream_spark_folder", "spark_default", "embedded", "duckdb_1")
FLINK = {"w1a": ("flink", "flink_1", "flink_rocksdb"), "w1b": ("flink",)}
ASKED = {
    "w1a": (8.0, 2.5),
    "w1b": (28.0, 15.0),
    "w2b": (22.0, None),
    "w3": (6.0, None),
    "w4": (2.0, None),
    "w5": (10.0, None),
}
"""How many times the rows a second of Spark's own join, and of Flink's, are asked of a job by any source."""

HEAD = (
    "join",
    "midstream on Spark, any source",
    "midstream on Spark, Parquet folder",
    "Spark's own join",
    "Flink",
    "any source / Spark's own",
    "midstream embedded, 1 thread, in all",
    "DuckDB offline, 1 thread, in all",
)

PAGE = Path(__file__).parent / "COMPARED.md"
HEADING = """# Compared with other engines

`FLINK_PYTHON=PYTHON python -m benchmarks.readme` writes this page. Each peer runs once, on the same batches, in turn
with the others. The rows of all answers are equal by count and by a sum of hashes. A rate is that of the last half of
the batches. The first half is left out: Java's compilers take up to two fifths of its processor time in a job of
midstream, and windows are not full. The second table has the last half of the first batches of the same runs."""

EARLY = ("join", "first batches", "of batches", "any source", "Parquet folder", "Spark's own join", "ratio")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=JOINS, help="this scenario (may be repeated)")
    options = parser.parse_args(arguments)
    console, begun = Console(highlight=False, stderr=True), time.monotonic()
    rows, early, verdicts, wrong, variants = [], list[list[str]](), list[Verdict](), list[str](), list[str]()
    for name in options.only or JOINS:
        title, first, batches = JOINS[name]
        scenario = replace(SCENARIOS[name], batches=batches)
        theirs = FLINK.get(name, ()) if os.environ.get(flink.PYTHON) else ()
        with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
            found, failed = measure(scenario, (*COMMON, *theirs), 1, Path(folder), console)
        wrong += failed + disagreements(found)
        rows.append((title, *_row(found)))
        early.append([title, str(first), str(batches), *rates(of_the_first(found, first), ("spark_default",))])
        verdicts += verdicts_of(name, title, found)
        variants += [_variant(title, one) for one in found if one.peer in theirs]
    facts = machine()
    measured = (
        f"Measured on {facts['when']} ({facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}), "
        f"load {os.getloadavg()[0]:.1f}, in {(time.monotonic() - begun) / 60:.1f} minutes. Rows a second."
    )
    parts = [
        measured,
        table(HEAD, "lrrrrrrr", rows),
        table(EARLY, "lrrrrrr", early),
        verdict_table(verdicts),
        "\n".join(f"- {one}" for one in variants),
    ]
    page = "\n\n".join(part.strip() for part in parts)
    print("\n".join(["", page, *(f"WRONG  {line}" for line in wrong)]))
    if not (options.only or wrong):
        PAGE.write_text(f"{HEADING}\n\n{page}\n", encoding="utf-8")
    return 1 if wrong else 0


def rate(found: Sequence[Measurement], peer: str) -> float | None:
    """Return the steady rows a second of a peer; of Flink the most that one of its variants does, results thrown away
    or written.
    """
    if peer == "flink":
        own = [one for one in found if one.peer in FLINK["w1a"]]
        return max((max(one.steady_rate, one.notes.get(flink.THROWN, 0)) for one in own), default=None)
    return value(found, peer, "steady rows a second") if any(one.peer == peer for one in found) else None


def _row(found: Sequence[Measurement]) -> list[str]:
    seconds = [f"{one.seconds:.2f} s" for peer in ("embedded", "duckdb_1") for one in found if one.peer == peer]
    return [*rates(found, ("spark_default", "flink")), *seconds]


def of_the_first(found: Sequence[Measurement], batches: int) -> list[Measurement]:
    """Return the measurements as if the runs had ended after so many batches."""
    return [replace(one, batches=one.batches[:batches]) for one in found]


def rates(found: Sequence[Measurement], others: Sequence[str]) -> list[str]:
    """Write the rates of a job by any source, by a folder, and of others, and how the first compares with the third."""
    every = [rate(found, peer) for peer in ("midstream_spark", "midstream_spark_folder", *others)]
    ours, _, theirs, *_ = every
    ratio = f"**{ours / theirs:.1f}**" if ours and theirs else ""
    return [*("" if one is None else f"{one:,.0f}" for one in every), ratio]


def verdicts_of(name: str, title: str, found: Sequence[Measurement]) -> list[Verdict]:
    """Compare a job by any source with what is asked of it."""
    made = []
    for peer, called, least in zip(("spark_default", "flink"), ("Spark's own", "Flink"), ASKED[name], strict=True):
        ours, theirs = rate(found, "midstream_spark"), rate(found, peer)
        if least and ours and theirs:
            what = f"{title}: any source / {called} ({ours:,.0f} / {theirs:,.0f})"
            made.append(Verdict(what, f"{ours / theirs:.2f}", f"at least {least:g}", ours / theirs >= least))
    return made


def _variant(title: str, one: Measurement) -> str:
    notes = ", ".join(f"{name}: {value:,}" for name, value in one.notes.items())
    return f"{title}, {one.peer}: {one.steady_rate:,.0f} rows a second ({notes})"


if __name__ == "__main__":
    sys.exit(main())
