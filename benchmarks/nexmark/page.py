"""The Markdown page over all queries, and over the auction day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.compare import disagreements, value
from benchmarks.nexmark.day_page import day_part
from benchmarks.nexmark.questions import QUESTIONS
from benchmarks.optimizer.record import Report
from benchmarks.report import Result
from benchmarks.table import table

HEAD = """# NEXMark beside Spark's own streaming SQL

Written by `python -m benchmarks.nexmark` (part of `make bench`). Every query of
[NEXMark](../docs/language_table.md#nexmark), as its job file under `examples/nexmark` has it, beside the same in
Spark's SQL, append mode, watermarks without delay: one session for both (`local[2]`, 8 GB, two partitions, Spark's
default state store), the same Parquet files by batch, a Parquet sink and a checkpoint on the local disk. Runs take
turns, query by query; every second round goes the other way round. A rate is over the last half of the batches, from
the trigger of each to its commit, of all rows of the streams that the query reads; values are medians over the
rounds. Queries that read one another (5, 6) are one job.

The answers of all, of Spark, the embedded engine (one thread, one core) and DuckDB (offline, one thread) too, are
compared by count and by a sum of hashes, numbers rounded to four digits; a last batch of one row a stream, which is not
timed, closes all windows. DuckDB sees the whole input at once: the offline limit, not a rival. Spark's texts are in
[spark_texts.py](nexmark/spark_texts.py).
"""


def page(results: Sequence[Result], day: Report | None, quick: bool = False) -> str:
    """The page; that of a quick run says so."""
    parts = [HEAD] + (["**A quick run on small inputs: these times mean nothing.**\n"] if quick else [])
    machines = {", ".join(f"{name} {fact}" for name, fact in result.machine.items()): None for result in results}
    parts += [f"Measured: {machine}.\n" for machine in machines]
    mistakes = [line for result in results for line in disagreements(result.measurements)]
    parts += ["## WRONG\n", "\n".join(f"- {line}" for line in mistakes) + "\n"] if mistakes else []
    if results:
        parts += ["## Rows a second\n", _rates(results)]
        parts += ["## What Spark refuses\n", _refusals(results)]
    return "\n".join(parts + ([day_part(day)] if day else []))


def _rates(results: Sequence[Result]) -> str:
    names = ("query", "asks", "midstream on Spark", "Spark's own", "ratio", "midstream embedded, in all")
    return table((*names, "DuckDB offline, in all", "results"), "llrrrrrr", map(_row, results))


def _row(result: Result) -> Sequence[str]:
    own, question = result.measurements, QUESTIONS[result.scenario]
    peers = {measurement.peer for measurement in own}
    rates = {
        peer: value(own, peer, "steady rows a second") for peer in ("midstream_spark", "spark_default") if peer in peers
    }
    ours, theirs = rates.get("midstream_spark"), rates.get("spark_default")
    rewritten = " (rewritten)" if question.spark and question.spark_as_written else ""
    seconds = [f"{value(own, p, 'seconds in all'):.2f} s" if p in peers else "" for p in ("embedded", "duckdb_1")]
    return (
        question.name, question.title, f"{ours:,.0f}" if ours else "",
        f"{theirs:,.0f}{rewritten}" if theirs else "refused" if not question.spark else "",
        f"**{ours / theirs:.1f}**" if ours and theirs else "", *seconds, f"{own[0].answer.rows:,}",
    )  # fmt: skip


def _refusals(results: Sequence[Result]) -> str:
    rows = list(_refused(results))
    if not rows:
        return "None of these.\n"
    tail = "Where a rewrite is measured it collects sets and takes their sizes.\n"
    return table(("query", "error class", "what it says", "measured instead"), "llll", rows) + "\n" + tail


def _refused(results: Sequence[Result]) -> Iterator[Sequence[str]]:
    for result in results:
        said = [one.notes["refused"] for one in result.measurements if "refused" in one.notes]
        if said:
            error, _, message = said[0].partition("] ")
            first = message.partition(" (")[0].partition(". ")[0]
            instead = "a rewrite" if QUESTIONS[result.scenario].spark else "nothing"
            yield result.scenario, f"`{error.removeprefix('[')}`", first, instead
