"""The engine that is killed at random: `python -m tests.spark.endless_engine ROOT KEPT [--once] [--take-over]`.

The same job as `endless_job`, of a job file: so all its sinks are such as a file can name.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import pyarrow.parquet as pq

from midstream.embedded.job_run import FileJob
from midstream.sql.job_file import JobFile
from midstream.sql.job_specs import QuerySpec, SourceSpec, TableSpec
from tests.spark.endless_job import QUERIES, RECENT, streams
from tests.spark.endless_queries import FIRST, TEXTS, rates
from tests.spark.other_sinks import other_sinks

INTERVAL = 0.05


def the_file(root: Path, kept: str) -> JobFile:
    """The job, the same whenever it is started."""
    sources = {
        spec.name: SourceSpec(
            "parquet",
            str(root / "in" / spec.name),
            None,
            spec.timestamp,
            spec.lateness,
            spec.idle_timeout,
            {"maxFilesPerTrigger": "1"},
        )
        for spec in streams()
    }
    texts = {name: spec.cql() for name, spec in QUERIES.items()} | TEXTS
    own = {name: {"path": f"{kept}/answers/{name}", "format": "parquet"} for name in texts}
    others = {name: sink.to_json() for name, sink in other_sinks(root).items() if name != "called"}
    sinks = own | others
    queries = {
        name: QuerySpec(
            name, texts.get(name, RECENT.cql()), "((A B) C)" if name == "chain" else None, sink,
            spread="psp_d" if name == "ring" else None,
        )
        for name, sink in sinks.items()
    }  # fmt: skip
    pq.write_table(rates(FIRST), root / "rates.parquet")
    tables = {"rates": TableSpec("parquet", str(root / "rates.parquet"))}
    return JobFile(f"{kept}/checkpoint", 2, sources, queries, patience=120_000_000, tables=tables)


def main(root: Path, kept: str, once: bool, take_over: bool) -> None:
    """Run the job."""
    stops: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        stops.append(number)

    signal.signal(signal.SIGTERM, stop)
    with FileJob(the_file(root, kept), take_over=take_over, threads=1) as running:
        print("started", flush=True)
        running.run(None if once else INTERVAL, lambda: bool(stops), lambda _: None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "--once" in sys.argv, "--take-over" in sys.argv)
