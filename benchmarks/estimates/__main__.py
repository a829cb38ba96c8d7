"""Measures and writes the page: `python -m benchmarks.estimates`; `--quick` leaves the page as it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from benchmarks.estimates.errors import MOST_95, MOST_MEDIAN, Errors, errors
from benchmarks.estimates.shapes import SHAPES
from benchmarks.estimates.standing import standing
from benchmarks.estimates.streams import KINDS, streams
from benchmarks.estimates.truth import Truth
from midstream.optimizer.samples.drawn import ChunkSamples
from midstream.optimizer.samples.sample_reading import BUDGET, samples_of

PAGE = Path(__file__).resolve().parent.parent / "ESTIMATES.md"
ROWS, SEEDS = 20_000, 3
QUICK_ROWS, QUICK_SEEDS = 8_000, 1


@dataclass(frozen=True)
class Measured:
    """Streams of a kind under a query: errors, and milliseconds to sample (at first, again) and to answer."""

    kind: str
    shape: str
    errors: Errors
    first: float
    again: float
    answers: float

    @property
    def row(self) -> str:
        """A row of the table."""
        e = self.errors
        return (
            f"| {self.kind} | {self.shape} | {len(e.found)} | {e.median:.2f} | {e.most_of_95:.2f} | {max(e.found):.2f} "
            f"| {100 * e.within / len(e.found):.0f} % | {self.first:.0f} | {self.again:.0f} | {self.answers:.0f} |"
        )


def measured(rows: int, seeds: int) -> Iterator[Measured]:
    """All kinds under all shapes, one after the other."""
    for kind in KINDS:
        data = [streams(kind, rows, seed) for seed in range(seeds)]
        truths = [Truth(one) for one in data]
        for name, shape in SHAPES.items():
            found, spent = [], [0.0, 0.0, 0.0]
            for seed, (one, truth) in enumerate(zip(data, truths, strict=True)):
                job, memory = standing(shape.sql, one), ChunkSamples()
                times = [process_time()]
                for _ in range(2):
                    samples = samples_of(job.manifest, job.observed, job.store, BUDGET, seed, memory)
                    times.append(process_time())
                for subset in shape.subsets():
                    samples.rows(subset)
                times.append(process_time())
                spent = [s + 1e3 * (b - a) / seeds for s, a, b in zip(spent, times, times[1:], strict=False)]
                found.append(errors(shape, samples, truth))
            yield Measured(kind, name, Errors.all(found), *spent)


def page(found: list[Measured], rows: int, seeds: int) -> str:
    """The table, and what it must reach."""
    whole = Errors.all([one.errors for one in found])
    lines = [
        "# Sizes of joins that nobody ran",
        "",
        f"Six streams of {rows:,} rows in their windows, samples of about {BUDGET:,} rows a stream, {seeds} seeds;",
        "the size of every set of two streams or more that conditions hold together, against DuckDB's. The q-error is",
        f"how many times too great or too small an estimate is; required are a median of {MOST_MEDIAN} and, of 95 in",
        f"100, {MOST_95:g}. *Within* is how often the true size lies within the bounds. Milliseconds of CPU: to sample",
        "all streams with no chunk known, with all chunks known, and to answer for all sets. Written by",
        "`python -m benchmarks.estimates`, part of `make bench`.",
        "",
        "| streams | query | sizes | median | 95th | greatest | within | sample | again | answers |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(one.row for one in found),
        "",
        f"All together: median {whole.median:.2f}, 95th percentile {whole.most_of_95:.2f}, greatest "
        f"{max(whole.found):.2f}, within the bounds {100 * whole.within / len(whole.found):.0f} %.",
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measures, writes the page, and fails where what must be reached is not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small windows, one seed, nothing written")
    quick = parser.parse_args(arguments).quick
    rows, seeds = (QUICK_ROWS, QUICK_SEEDS) if quick else (ROWS, SEEDS)
    found = list(measured(rows, seeds))
    text = page(found, rows, seeds)
    print(text)
    if not quick:
        PAGE.write_text(text, encoding="utf-8")
    missed = [one for one in found if not one.errors.reached]
    for one in missed:
        print(f"missed: {one.kind}, {one.shape}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
