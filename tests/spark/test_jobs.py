"""A job's life: commands while it runs, restarts with another script, steps that bring nothing, going back."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.model.events import CommandRefused, MigrationEnded, QueryAdded, QueryDropped, StateRebuilt
from midstream.model.step_time import time_summary
from midstream.spark import log_files
from midstream.spark.driver import Driver
from midstream.spark.running_job import Run
from tests.crash_case import CHAIN, GROUPED, PLANS, STREAMS
from tests.oracle.answer import answers
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_same
from tests.spark.crash_job import CASE, feed
from tests.spark.drive import Hooks, Place, finish, job, read_all
from tests.spark.processes import kill_workers

STEPS = len(CASE.steps)
PAIRS = "SELECT A.u AS a, B.u AS b FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS"


def feed_step(place: Place, step: int) -> None:
    tables = {spec.name: CASE.steps[step].get(spec.name, spec.schema.empty_table()) for spec in STREAMS}
    place.feed_together(step, tables)


def until(run: Run, step: int) -> None:
    """Wait until a step is done."""
    deadline = time.monotonic() + 60
    while run.status()["step"] < step:
        assert time.monotonic() < deadline
        assert not run.await_termination(0.02)


def until_taken(run: Run, place: Place, step: int) -> None:
    """Wait until the rows of a step are done, in however many batches a busy machine takes them."""
    until(run, step)
    fed = sum(table.num_rows for tables in CASE.steps[: step + 1] for table in tables.values())
    deadline = time.monotonic() + 60
    while sum(p.rows + p.late + p.rejected for p in place.manifest().progress.values()) < fed:
        assert time.monotonic() < deadline
        assert not run.await_termination(0.02)


def jobs(spark: SparkSession) -> int:
    """How many Spark jobs there have been."""
    context: Any = spark._jsc
    return int(context.sc().dagScheduler().numTotalJobs())


def test_commands_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    declared = {"chain": CHAIN.cql(), "pairs": PAIRS}
    feed_step(place, 0)
    run = job(spark, place, STREAMS, declared, {"chain": PLANS[0]}, lanes=2).start({"processingTime": "0 seconds"})
    until_taken(run, place, 0)
    for wrong, kind in (
        (lambda: run.migrate("nobody", PLANS[1]), ms.QueryError),
        (lambda: run.migrate("chain", "((A B) B)"), ms.PlanError),
        (lambda: run.migrate("chain", PLANS[1], strategy="magic"), ms.StrategyError),
        (lambda: run.migrate("chain", PLANS[1], "pause_drain_resume"), ms.StrategyError),
        (lambda: run.add_query("pairs", PAIRS), ms.QueryError),
        (lambda: run.add_query("bad", "SELECT nothing FROM A"), ms.LanguageError),
        (lambda: run.add_query("bad", PAIRS, sink={"path": "/x", "format": "xml"}), ms.SinkError),
        (lambda: run.drop_query("nobody"), ms.QueryError),
        (lambda: run.rescale(0), ms.QueryError),
    ):
        with pytest.raises(kind):
            wrong()
    assert run.status()["waiting_commands"] == []
    assert [run.migrate("chain", PLANS[1]), run.drop_query("pairs"), run.rescale(3)] == [1, 2, 3]
    feed_step(place, 1)
    until_taken(run, place, 1)
    seen: list[tuple[int, str, int]] = []
    run.add_query("counts", GROUPED.cql(), sink=lambda rows, step, query: seen.append((step, query, rows.count())))
    for step in (2, 3):
        feed_step(place, step)
        until_taken(run, place, step)
    run.stop()
    status = run.status()
    assert (status["state"], status["lanes"]) == ("stopped", 3)
    last = status["step"]
    assert last >= 3
    assert set(status["queries"]) == {"chain", "counts"}
    assert status["queries"]["chain"]["plan"] == PLANS[1]
    assert json.loads(json.dumps(status)) == status
    kinds = [type(event) for event in run.events]
    assert kinds.count(MigrationEnded) == kinds.count(QueryDropped) == 1 and CommandRefused not in kinds
    lives = [Lifetime("chain", CHAIN), Lifetime("counts", GROUPED, 2)]
    expected = answers(STREAMS, CASE.steps, lives)
    assert_same(read_all(place.answers("chain")), expected["chain"])
    assert {step for step, _, _ in seen} <= set(range(2, last + 1))
    assert sum(rows for _, _, rows in seen) == expected["counts"].table.num_rows > 0


def test_a_restart_with_another_script(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """Another plan, more lanes, one query gone, one new, one changed: the rest goes on where it stopped."""
    place = Place(tmp_path)
    for step in (0, 1):
        feed_step(place, step)
    first = {"chain": CHAIN.cql(), "gone": PAIRS, "changed": PAIRS, "stays": PAIRS}
    finish(job(spark, place, STREAMS, first, {"chain": PLANS[0]}, lanes=2))
    for step in (2, 3):
        feed_step(place, step)
    changed = PAIRS.replace("A.k = B.k", "A.n = B.n")
    second = {"chain": CHAIN.cql(), "changed": changed, "stays": PAIRS, "new": GROUPED.cql()}
    run = finish(job(spark, place, STREAMS, second, {"chain": PLANS[1]}, lanes=3))
    happened = [(type(e), getattr(e, "query", "")) for e in run.events]
    for expected_event in (
        (MigrationEnded, "chain"), (QueryDropped, "gone"), (QueryDropped, "changed"), (QueryAdded, "changed"),
        (QueryAdded, "new"),
    ):  # fmt: skip
        assert expected_event in happened
    assert (QueryAdded, "stays") not in happened
    manifest = place.manifest()
    assert manifest.lanes == 3 and set(manifest.queries) == set(second)
    expected = answers(STREAMS, CASE.steps, [Lifetime("chain", CHAIN), Lifetime("new", GROUPED, 2)])
    for name, answer in expected.items():
        assert_same(read_all(place.answers(name)), answer, name)
    whole = finish(job(spark, Place(tmp_path / "other"), STREAMS, {}))
    assert whole.status()["step"] == -1


def test_a_restart_keeps_what_commands_changed(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    place, declared = Place(tmp_path), {"chain": CHAIN.cql(), "pairs": PAIRS}
    feed_step(place, 0)
    run = finish(job(spark, place, STREAMS, declared, {"chain": PLANS[0]}, lanes=2))
    run.migrate("chain", PLANS[1])
    run.rescale(3)
    run.drop_query("pairs")
    run.add_query("counts", GROUPED.cql())
    for step in (1, 2):
        feed_step(place, step)
        finish(job(spark, place, STREAMS, declared, {"chain": PLANS[0]}, lanes=2))
    manifest = place.manifest()
    assert manifest.lanes == 3 and set(manifest.queries) == {"chain", "counts"}
    assert manifest.queries["chain"].plan == PLANS[1]
    assert list((place.checkpoint / "results" / "counts").glob("step=*"))


def test_a_step_is_one_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(tmp_path)
    before = jobs(spark)
    run = finish(job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=2))
    assert jobs(spark) - before == STEPS
    assert run.query.name == f"midstream {place.checkpoint} #1", "as Spark's pages and its progress events call it"
    context: Any = spark._jsc
    told = [context.sc().statusStore().job(before + step).description().get() for step in range(STEPS)]
    assert told == [f"midstream step {step}: chain" for step in range(STEPS)]


def test_a_step_that_brings_nothing_costs_no_spark_job(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    reader = spark.readStream.schema("k BIGINT, ts BIGINT").option("maxFilesPerTrigger", 1)
    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    asked.stream("A", reader.json(str(source)), timestamp="ts", unit="us")
    asked.query("q", "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS", sink=ms.sinks.files(tmp_path / "out"))
    for number, text in enumerate(['{"k": 1, "ts": 5}\n', "", '{"k": 1, "ts": 6}\n']):
        (source / f"{number}.json").write_text(text)
        os.utime(source / f"{number}.json", (1_600_000_000 + number, 1_600_000_000 + number))
    before = jobs(spark)
    run = finish(asked)
    assert [e.rows_in for e in run.events if e.kind == "step_done"] == [{"A": 1}, {"A": 0}, {"A": 1}]  # type: ignore[attr-defined]
    assert jobs(spark) - before == 2
    assert run.status()["queries"]["q"]["counters"]["rows_out"] > 0
    assert read_all(tmp_path / "out").num_rows == 1 + 3


def test_names_of_streams_and_columns_stay_names_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Arrivals of streams are counted in columns, and Spark's SQL can call any method of the JVM; PySpark takes names
    of columns apart that are read in Python.
    """
    hostile = "A` IS NULL OR java_method('java.lang.System', 'setProperty', 'midstream.harm', 'done') = `_ts"
    column = "k.`1"
    odd = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    for number, name in enumerate(("A", hostile)):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "0.json").write_text("".join(json.dumps({column: 1, "ts": t}) + "\n" for t in (5, 6)))
        texts = spark.readStream.schema("`k.``1` STRING, ts STRING").json(str(tmp_path / f"{number}"))
        odd.stream(name, texts, timestamp="ts", schema=pa.schema([(column, pa.int64()), ("ts", pa.int64())]), unit="us")
    sql = f'SELECT x."{column}" FROM A AS x [ROWS 1], "{hostile}" AS y [ROWS 2] WHERE x."{column}" = y."{column}"'
    odd.query("q", sql, sink=ms.sinks.files(tmp_path / "out"))
    finish(odd)
    assert read_all(tmp_path / "out").num_rows == 3
    java: Any = spark._jvm
    assert java.System.getProperty("midstream.harm") is None


def test_streams_without_queries_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(tmp_path)
    run = finish(job(spark, place, STREAMS, {}, lanes=2))
    rows = {spec.name: sum(step[spec.name].num_rows for step in CASE.steps if spec.name in step) for spec in STREAMS}
    found = {name: sum(one[k] for k in ("rows", "late")) for name, one in run.status()["streams"].items()}
    assert found == rows
    times = run.times
    assert [one.step for one in times] == list(range(run.status()["step"] + 1))
    assert {tuple(one.phases) for one in times} == {("listing", "spark", "plan", "tasks", "commit", "sinks")}
    assert all(0 < one.phases["tasks"] < one.seconds < 60 and one.phases["listing"] > 0 for one in times)
    assert sum(sum(one.rows.values()) + one.late for one in times) == sum(rows.values())
    assert Checkpoint.open(place.checkpoint).step_times() == times, "written when the run has ended"
    assert run.metrics()["time"] == run.status()["time"] == time_summary(times)


def test_going_back_to_an_older_manifest(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """The newest manifest is damaged; the error says how to go back, and then the answer is whole."""
    place = Place(tmp_path)
    feed(tmp_path)
    make = lambda: job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=2)  # noqa: E731
    finish(make())
    newest = sorted((place.checkpoint / "manifests").glob("*.json"))[-1]
    newest.write_text(newest.read_text().replace("A", "a", 1))
    with pytest.raises(ms.CheckpointError, match="go back to step 2") as caught:
        make().start()
    assert str(newest) in caught.value.place
    from midstream.checkpoint.manifest_log import ManifestLog

    ManifestLog(place.checkpoint / "manifests").rewind(1)
    finish(make())
    assert place.manifest().step >= 2
    assert_same(read_all(place.answers("chain")), answers(STREAMS, CASE.steps, CASE.queries[:1])["chain"])


@pytest.mark.usefixtures("unchecked")
def test_state_that_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """A damaged base chunk ends the job with an error that names it; nothing has been done."""
    place = Place(tmp_path)
    for step in (0, 1):
        feed_step(place, step)
    make = lambda: job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=1)  # noqa: E731
    finish(make())
    chunks = [ref for lane in place.manifest().lane_states.values() for s in lane.states.values() for ref in s.chunks]
    shutil.rmtree(place.checkpoint / "store")
    feed_step(place, 2)
    with pytest.raises(ms.CheckpointError, match="is missing") as caught:
        finish(make())
    assert any(ref.name.partition("@")[0] in caught.value.place for ref in chunks) and caught.value.remedy
    assert place.manifest().step == 1


def test_derived_state_that_is_lost_is_computed_again(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(tmp_path)

    def lose(driver: Driver) -> None:
        lost = [f for f in Path(driver.folders.chunks.url).rglob("*.arrow") if ".rows-" not in f.name]
        assert lost
        for file in lost:
            file.unlink()

    hooks.at(2, lose)
    # A worker that has a chunk open does not miss its file: so the job begins anew, with other workers.
    hooks.at(2, lambda driver: kill_workers())
    run = finish(job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=2))
    assert [event for event in run.events if isinstance(event, StateRebuilt)]
    assert_same(read_all(place.answers("chain")), answers(STREAMS, CASE.steps, CASE.queries[:1])["chain"])


def test_a_table_of_every_type_goes_through(spark: SparkSession, tmp_path: Path) -> None:
    """Types as Spark brings them, nested ones too, as keys and as payload."""
    rows = 20
    frame = spark.createDataFrame(
        [
            (n % 3, n, float(n), f"é{n % 3}", bytes([n]), n % 2 == 0, [n, None], {"x": n}, {"m": f"{n}"})
            for n in range(rows)
        ],
        "b TINYINT, i INT, f FLOAT, s STRING, raw BINARY, yes BOOLEAN, "
        "list ARRAY<INT>, st STRUCT<x: INT>, m MAP<STRING, STRING>",
    ).selectExpr(
        "*", "CAST(i AS DECIMAL(10, 2)) AS d", "date_add(DATE'2024-01-01', i) AS day",
        "timestamp_seconds(i) AS ts", "CAST(timestamp_seconds(i) AS TIMESTAMP_NTZ) AS ntz", "CAST(i AS SMALLINT) AS sh",
    )  # fmt: skip
    frame.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    asked = ms.Job(spark, tmp_path / "checkpoint", lanes=2)
    asked.stream("A", stream, timestamp="ts").stream("B", stream, timestamp="ntz")
    keys = ("b", "i", "f", "s", "raw", "yes", "d", "day", "ts", "ntz", "sh")
    for key in keys:
        sql = f"SELECT A.*, B.i AS other FROM A, B WHERE A.{key} = B.{key} WINDOW 1 HOUR"
        asked.query(key, sql, sink=ms.sinks.files(tmp_path / "out" / key))
    finish(asked)
    values = frame.toArrow().to_pydict()
    for key in keys:
        found = read_all(tmp_path / "out" / key)
        pairs = sum(values[key][a] == values[key][b] for a in range(rows) for b in range(rows))
        assert found.num_rows == pairs, key
        first = found.slice(0, 1).to_pylist()[0]
        assert first["list"] == [first["i"], None] and first["m"] == [("m", str(first["i"]))]
    assert isinstance(found, pa.Table)


def test_sources_are_opened_under_the_settings_of_a_job(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's other file managers start processes for every file, and the default one writes a twin of checksums.

    The user's session has its own settings again once the job has started.
    """
    setting = "spark.sql.streaming.checkpointFileManagerClass"
    before = spark.conf.get(setting, None)
    place = Place(tmp_path)
    feed_step(place, 0)
    run = job(spark, place, STREAMS, {"pairs": PAIRS}, {}, lanes=1).start({"processingTime": "0 seconds"})
    assert spark.conf.get(setting, None) == before
    until_taken(run, place, 0)
    query: Any = run.query
    assert query._jsq.streamingQuery().offsetLog().fileManager().getClass().getName() == log_files.OURS
    run.stop()
    logs = [path for path in place.checkpoint.rglob("sources/*/*") if path.is_file()]
    assert logs and not [path for path in logs if path.suffix == ".crc"]
