"""Rows on their way to the lanes in blocks: as the embedded engine deals them, by files or by the shuffle."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.embedded.folder_source import FolderSource
from midstream.expr.expression import Column
from midstream.model.errors import SinkError
from midstream.model.schema import StreamSchema
from midstream.runtime.lane_key import slots_of
from midstream.runtime.watermark import Seen, StepClock
from midstream.spark import blocks, parcel
from midstream.spark.blocks import SEEN, Split, seen_of, shares, summed
from midstream.spark.exchange import Group
from midstream.spark.layout import STREAM, StepLayout, kept_column
from midstream.spark.parcel import END, STOP, ParcelFiles
from midstream.spark.unpack import StreamSlots
from midstream.spark.whole_files import WholeFiles
from midstream.state.base_state import TIME
from midstream.storage.files import FileStore

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
DDL = "k BIGINT, n INT, s STRING, ts TIMESTAMP"
QUERIES = {
    "pairs": "SELECT A.k, A.s, B.n FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k AND A.n <> B.n",
    "left": "SELECT A.k, B.s FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k",
    "counts": "SELECT k, COUNT(*) AS c, MAX(n) AS most FROM A GROUP BY k, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "small": "SELECT n, COUNT(s) AS c FROM B GROUP BY n, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "texts": "SELECT s, COUNT(*) AS c FROM B GROUP BY s, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "plain": "SELECT A.k, A.s FROM A WHERE A.n > 2",
    "most": "SELECT MAX(c) AS c FROM counts [RANGE 1 MINUTE] EVERY 10 SECONDS",
}


def part(stream: str, number: int) -> pa.Table:
    random = np.random.default_rng([number, ord(stream)])
    start = number * 4
    seconds = random.integers(start - 3, start + 4, 60)  # Some are late.
    columns = [
        pa.array(random.integers(-3, 6, 60), mask=random.random(60) < 0.1),
        pa.array(random.integers(0, 5, 60).astype(np.int32), mask=random.random(60) < 0.1),
        pa.array(random.choice(["x", "y", "z"], 60)),
        pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC"), mask=random.random(60) < 0.05),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def fill(root: Path, numbers: range) -> None:
    for name in "ABC":
        (root / name).mkdir(exist_ok=True)
        for number in numbers:
            path = root / name / f"{number:03d}.parquet"
            pq.write_table(part(name, number), path)
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def frame(spark: SparkSession, root: Path, name: str) -> DataFrame:
    return spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(root / name))


def read(root: Path, folder: str) -> Counter[Any]:
    files = (root / folder).rglob("*.parquet")
    return Counter(tuple(sorted(row.items(), key=str)) for f in files for row in pq.read_table(f).to_pylist())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("least", [1, 1 << 30], ids=["by files", "by the shuffle"])
def test_answers_are_those_of_the_embedded_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """Keys of numbers and texts, a group of one lane, a stream that nobody reads, late rows and dead letters."""
    monkeypatch.setattr(parcel, "LEAST", least)
    monkeypatch.setattr("midstream.spark.driver.LARGE", 0)  # Selections go to Spark.
    fill(tmp_path, range(4))
    job = ms.Job(spark, tmp_path / "spark", lanes=5)
    for name in "ABC":
        job.stream(name, frame(spark, tmp_path, name), timestamp="ts", lateness="1 second")
    for name, sql in QUERIES.items():
        job.query(name, sql)
    job.start({"availableNow": True}).await_termination()
    with ms.Engine(lanes=5, checkpoint=tmp_path / "embedded") as engine:
        for name in "ABC":
            engine.create_stream(name, SCHEMA, timestamp="ts", lateness="1 second")
        for name, sql in QUERIES.items():
            engine.add_query(name, sql, sink=ms.sinks.files(tmp_path / "embedded" / "results" / name))
        for number in range(4):
            engine.push({name: part(name, number) for name in "ABC"})
    for name in QUERIES:
        assert read(tmp_path, f"spark/results/{name}") == read(tmp_path, f"embedded/results/{name}") != Counter(), name
    told = [ms.open(tmp_path / place).report() for place in ("spark", "embedded")]
    assert told[0].streams == told[1].streams
    assert told[0].counters.comparisons == told[1].counters.comparisons > 0
    assert not list((tmp_path / "spark").rglob("parcels/*")), "blocks were left behind"


COUNTED = {"rows": "SELECT A.k, B.n FROM A [ROWS 5], B [ROWS 3] WHERE A.k = B.k AND A.s > 'x'"}


@pytest.mark.parametrize("queries", [QUERIES, {**QUERIES, **COUNTED}], ids=["by blocks", "where Spark counts rows"])
def test_what_tasks_read_by_themselves_comes_to_the_lanes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: dict[str, str]
) -> None:
    """A folder of files, columns in another type than declared, and a stream that Spark reads, in one job."""
    monkeypatch.setattr("midstream.spark.driver.LARGE", 0)
    fill(tmp_path, range(3))
    folder = FolderSource(str(tmp_path / "A"), "parquet", SCHEMA, {})
    files = WholeFiles.of(spark, folder, folder.path, {"maxFilesPerTrigger": "1"})
    texts = frame(spark, tmp_path, "B").selectExpr("k", "cast(n as string) as n", "s", "ts")
    frames: dict[str, Any] = {"A": files, "B": texts, "C": frame(spark, tmp_path, "C")}
    job = ms.Job(spark, tmp_path / "spark", lanes=3)
    with ms.Engine(lanes=3, checkpoint=tmp_path / "embedded") as engine:
        for name in "ABC":
            job.stream(name, frames[name], timestamp="ts", lateness="1 second", schema=None if name == "C" else SCHEMA)
            engine.create_stream(name, SCHEMA, timestamp="ts", lateness="1 second")
        for name, sql in queries.items():
            job.query(name, sql)
            engine.add_query(name, sql, sink=ms.sinks.files(tmp_path / "embedded" / "results" / name))
        for number in range(3):
            engine.push({name: part(name, number) for name in "ABC"})
    job.start({"availableNow": True}).await_termination()
    for name in queries:
        assert read(tmp_path, f"spark/results/{name}") == read(tmp_path, f"embedded/results/{name}") != Counter(), name
    for name in "AB":
        assert read(tmp_path, f"spark/late/{name}") == read(tmp_path, f"embedded/late/{name}") != Counter()
    told = [ms.open(tmp_path / place).report() for place in ("spark", "embedded")]
    assert told[0].streams == told[1].streams
    assert told[0].counters.comparisons == told[1].counters.comparisons > 0


def test_two_streams_of_one_frame_and_a_stream_of_two_sources_start_again(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path, range(2))
    (tmp_path / "none").mkdir()
    one = frame(spark, tmp_path, "A")
    empty = spark.readStream.schema(DDL).parquet(str(tmp_path / "none"))
    for _ in range(2):
        job = ms.Job(spark, tmp_path / "c", lanes=2)
        job.stream("A", one, timestamp="ts").stream("B", one, timestamp="ts")
        job.stream("C", frame(spark, tmp_path, "C").unionAll(empty), timestamp="ts", lateness="1 hour")
        job.query("plain", QUERIES["plain"])
        run = job.start({"availableNow": True})
        run.await_termination()
        fill(tmp_path, range(2, 4))
    counted = run.report().streams
    assert counted["A"].rows == counted["B"].rows > 100 and counted["C"].rows + counted["C"].rejected == 240


LAYOUT = StepLayout(("A", "B", "C"), {name: {"k": "_c0", "ts": TIME} for name in "ABC"})
OWN = pa.schema([SCHEMA.field("k"), SCHEMA.field("ts")])
STREAMS = tuple(StreamSlots.of(StreamSchema(name, OWN, "ts"), LAYOUT) for name in "ABC")
KEY = Column(pa.int64(), "A", "k")
GROUPS = (
    Group("keyed", 3, frozenset("AB"), {"A": KEY, "B": KEY}, {"A": "true"}),
    Group("single", 1, frozenset("B"), None, {}),
)
ROWS = 200


def arrived(number: int) -> pa.RecordBatch:
    """Rows of three streams, of which nobody reads the last; some are filtered out of the first group."""
    random = np.random.default_rng(number)
    return pa.RecordBatch.from_pydict({
        STREAM: pa.array(random.integers(0, 3, ROWS), pa.int8()),
        TIME: pa.array(random.integers(0, 100, ROWS), mask=random.random(ROWS) < 0.1),
        "_c0": pa.array(np.arange(ROWS) + number * ROWS),
        kept_column(0): pa.array(random.random(ROWS) < 0.7, mask=random.random(ROWS) < 0.1),
    })  # fmt: skip


def split_at(
    monkeypatch: pytest.MonkeyPatch, partition: int, given: Sequence[pa.RecordBatch], files: ParcelFiles | None
) -> list[tuple[int, parcel.Parcel]]:
    monkeypatch.setattr(blocks, "place_of_task", lambda: (partition, False))
    marks = dict.fromkeys("ABC", 20)
    split = Split(given[0].schema, STREAMS, GROUPS, 2, StepClock(0, marks), files)
    return split([batch.serialize().to_pybytes() for batch in given])


@pytest.mark.parametrize("by_files", [False, True])
def test_every_row_comes_to_its_lane_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by_files: bool) -> None:
    files = ParcelFiles(FileStore(tmp_path / "store"), 0, 1) if by_files else None
    given = [arrived(number) for number in range(4)]
    sent = split_at(monkeypatch, 1, given[:2], files) + split_at(monkeypatch, 0, given[2:], files)
    table = pa.Table.from_batches([*given[2:], *given[:2]]).to_pylist()  # In order of the source's partitions.
    lanes = [(0, 0), (0, 1), (0, 2), (1, 0)]
    for to in range(2):
        found = shares([one for place, one in sent if place == to], STREAMS, files)
        for group, lane in lanes[to::2]:
            for stream in map("ABC".index, sorted(GROUPS[group].streams)):
                kept = [r for r in table if r[STREAM] == stream and (group or r[kept_column(0)])]
                own = [r for r in kept if lane == (0 if group else slots_of(np.array([r["_c0"]]))[0] % 3)]
                share = found.pop((group, lane, stream))
                assert share.rows.column("_c0").to_pylist() == [row["_c0"] for row in own]
        unread = found.pop((2, 0, 2)).rows
        own = [row for row in table if row[STREAM] == 2 and (row[TIME] or 0) % 2 == to]
        assert unread.column("_c0").to_pylist() == [row["_c0"] for row in own]
        assert not found
    seen = summed(seen_of([one for _, one in sent]), "ABC")
    assert sum(one.rows + one.late + one.rejected for one in seen.values()) == 4 * ROWS
    assert all(to == 0 for to, one in sent if one.kind == SEEN)


def test_what_all_tasks_saw_is_added_up() -> None:
    told = [{"A": Seen(7, 3, 1, 0)}, {"A": Seen(5, 4, 2, 1), "B": Seen(None, 0, 0, 2)}, {}]
    assert summed(told, "ABC") == {"A": Seen(7, 7, 3, 1), "B": Seen(None, 0, 0, 2), "C": Seen()}


def test_a_block_that_cannot_be_written_stops_the_lanes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Full(FileStore):
        def put_bytes(self, label: str, data: bytes) -> str:
            raise SinkError("the disk is full", place=label, remedy="make room")

    store = Full(tmp_path / "store")
    monkeypatch.setattr(store, "synced_with", lambda unsynced: store)
    sent = split_at(monkeypatch, 0, [arrived(0)], ParcelFiles(store, 0, 1))
    assert [(to, one.kind) for to, one in sent if one.stage != END] == [(0, STOP), (1, STOP)]
    (told,) = [one for _, one in sent if one.stage == END]
    assert "the disk is full" in parcel.unpacked_report(told.body)["error"][1]
