"""Every query of NEXMark in the words of each peer.

midstream's text is that of the job file under `examples/nexmark`, DuckDB's that of the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from benchmarks.nexmark.rows import Batches
from benchmarks.nexmark.spark_texts import AS_WRITTEN, SPARK
from midstream.demo.nexmark import side_input
from midstream.sql.job_file import JobFile, read_job_file
from tests.embedded.nexmark_oracle import SQL

FILES = Path(__file__).parents[2] / "examples" / "nexmark"

FULL = Batches(events=360_000, per_second=6_000, count=6)
"""60,000 events in a batch, ten seconds of event time."""
SMALL = Batches(events=6_000, per_second=200, count=2)
"""Shows that everything runs and agrees: its times mean nothing."""

READS = {
    **dict.fromkeys(("q3", "q8"), ("person", "auction")),
    **dict.fromkeys(("q4", "q6", "q9", "q20"), ("auction", "bid")),
    "q23": ("person", "auction", "bid"),
}
"""The streams of a query; of all others it is the bids."""


@dataclass(frozen=True)
class Asked:
    """One query; the queries that it reads come before it."""

    name: str
    title: str
    input: Batches
    streams: tuple[str, ...]
    queries: Mapping[str, str]
    tables: Mapping[str, pa.Table]
    schemas: Mapping[str, str]
    duckdb: str
    spark: str
    spark_as_written: str
    by_value: bool = True

    @property
    def batches(self) -> int:
        """The batches that are timed: all but the closing one."""
        return self.input.count

    @property
    def duckdb_rows(self) -> Mapping[str, str]:
        """Times without a zone, as the texts of the tests have them."""
        times = {"auction": "ts::TIMESTAMP AS ts, expires::TIMESTAMP AS expires"}
        return {stream: f"* REPLACE ({times.get(stream, 'ts::TIMESTAMP AS ts')})" for stream in self.streams}

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        return self.input.schema(stream)

    def spark_schema(self, stream: str) -> str:
        """The columns of a stream as its job file declares them."""
        return self.schemas[stream]

    def steps(self) -> Iterator[dict[str, pa.Table]]:
        """The batches."""
        return self.input.steps(self.streams)

    def quick(self) -> Asked:
        """The same of a small input."""
        return replace(self, input=SMALL)


def _asked(path: Path) -> Asked:
    job, name = read_job_file(path), path.stem
    return Asked(
        name, path.read_text().splitlines()[0].removeprefix("# NEXMark ").partition(" ")[2].rstrip("."), FULL,
        READS.get(name, ("bid",)), {query: spec.sql for query, spec in job.queries.items()},
        MappingProxyType({table: side_input() for table in job.tables}), _schemas(job),
        SQL[name, list(job.queries)[-1]], SPARK.get(name, ""), AS_WRITTEN.get(name, ""),
    )  # fmt: skip


def _schemas(job: JobFile) -> Mapping[str, str]:
    return {name: " ".join((source.schema or "").split()) for name, source in job.streams.items()}


QUESTIONS = {
    path.stem: _asked(path) for path in sorted(FILES.glob("q*.toml"), key=lambda path: int(path.stem.removeprefix("q")))
}
"""Every query by name, in the order of their numbers."""
