"""What the README shows on Spark runs as shown: a plan is changed in mid-run and no pair from before it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from midstream.model.events import MigrationBegun
from tests.docs.pages import PAGES, ROOT, Page
from tests.docs.test_snippets import needs_spark, run


def file_of(folder: Path, *seconds: int) -> None:
    """A file of rows at these seconds of event time, put into a stream's folder whole."""
    folder.mkdir(parents=True, exist_ok=True)
    times = pa.array([second * 10**6 for second in seconds], pa.timestamp("us", "UTC"))
    whole = folder / f".{seconds[0]}.parquet"
    pq.write_table(pa.table({"id": [7] * len(seconds), "ts": times}), whole)
    whole.rename(folder / f"{seconds[0]}.parquet")


def test_every_page_that_needs_spark_is_run_by_a_test() -> None:
    """The README below, Kafka's page in test_kafka.py."""
    assert {page.name for page in PAGES if page.programs() and needs_spark(page)} == {"README.md", "docs/kafka.md"}


def test_the_readme_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    page = Page(tmp_path / "README.md")
    page.path.write_text((ROOT / "README.md").read_text().replace("/data/", f"{tmp_path}/"))
    for stream, second in (("orders", 1), ("payments", 3), ("refunds", 2)):
        file_of(tmp_path / "in" / stream, second)
    names: dict[str, Any] = {"spark": spark}
    run(page, names)
    job = names["run"]
    try:
        job.query.processAllAvailable()
        file_of(tmp_path / "in" / "refunds", 9)
        job.query.processAllAvailable()
    finally:
        job.stop()
    answers = pa.concat_tables(pq.read_table(file) for file in sorted((tmp_path / "out/refunded").rglob("step=*/*")))
    assert sorted(time.second for time in answers["_ts"].to_pylist()) == [3, 9]
    assert [event.new for event in job.events if isinstance(event, MigrationBegun)] == ["(orders (payments refunds))"]
