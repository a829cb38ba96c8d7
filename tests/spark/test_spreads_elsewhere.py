"""Joins over nodes on Spark, elsewhere and otherwise: on a store, taken up by another spread, of more streams, by a
predicate of the user's, by a job file and the command line, with the number of nodes left to the cost model.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.cli.main import main
from midstream.model.events import QuerySpread
from midstream.pipeline.doctor import examine
from midstream.ring import lengthening
from midstream.storage import chunk_cache, places
from midstream.storage.places import storage_at
from tests.job_folder import JOB, fill
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import Place, finish, job
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.spread_job import BAND, STREAMS, spread_case
from tests.unit.cli.test_process import midstream

pytestmark = pytest.mark.timeout(600)


def by_step(url: str, steps: int) -> list[pa.Table | None]:
    """A sink on a store, step by step."""
    found: list[list[pa.Table]] = [[] for _ in range(steps)]
    for name, _ in storage_at(url).walk():
        folder, _, file = name.rpartition("/")
        if folder.startswith("step=") and file.endswith(".parquet"):
            found[int(folder[5:])].append(pq.read_table(pa.BufferReader(storage_at(url).read(name))))
    return [pa.concat_tables(tables) if tables else None for tables in found]


def test_a_spread_on_a_store_is_taken_up_by_others_and_goes_back(
    spark: SparkSession, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start declares another spread; a savepoint made amid one of them is gone back to, and forked."""
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setenv(places.WORK, str(tmp_path / "work"))
    case, place, checkpoint = spread_case({"q": BAND}, 20, 40, 60, 75, 90), Place(tmp_path), f"{bucket}/checkpoint"

    def run(spread: str | None, nodes: int | None, *steps: int, into: str = "checkpoint", out: str = "answers") -> None:
        for step in steps:
            tables = case.steps[step]
            place.feed_together(step, {one.name: tables.get(one.name, one.schema.empty_table()) for one in STREAMS})
        made = ms.Job(spark, f"{bucket}/{into}", lanes=2)
        for one in STREAMS:
            made.stream(one.name, place.frame(spark, one), timestamp=one.timestamp, lateness=one.lateness)
        made.query("q", BAND.cql(), None, ms.sinks.files(f"{bucket}/{out}"), spread=spread, nodes=nodes)
        finish(made)
        newest = ManifestLog(f"{bucket}/{into}/manifests").latest()
        assert newest is not None
        now = newest.queries["q"].nodes
        assert (spread, nodes) == ((None, None) if now is None else (now.scheme, now.nodes))

    def check(steps: int, out: str = "answers", since: int = 0) -> None:
        answer = replace(case, steps=case.steps[:steps]).expected()["q"]
        found = by_step(f"{bucket}/{out}", steps)
        if since:
            assert [one is None for one in found[:since]] == [True] * since
            found[:since] = by_step(f"{bucket}/answers", steps)[:since]
        assert_each_step_same(found, answer, "q")

    run("psp_d", 3, 0, 1)
    assert main(["savepoint", checkpoint, "early"]) == 0
    run("psp", 2, 2)
    run("atr", 4, 3)
    check(4)
    assert main(["rewind", checkpoint, "early"]) == 0
    check(2)
    assert main(["fork", checkpoint, "early", f"{bucket}/forked"]) == 0
    run("psp_i", 5, 4)
    check(5)
    run("ctr", 3, into="forked", out="forked/results/q")
    check(5, out="forked/results/q", since=2)
    run(None, None, 5)
    check(6)
    assert examine(checkpoint).is_well and examine(f"{bucket}/forked").is_well


@pytest.mark.parametrize(("names", "scheme", "nodes"), [("ABCD", "psp_d", 3), ("ABCDE", "psp", 2)])
def test_more_streams_meet_by_a_predicate_of_the_users(
    spark: SparkSession, tmp_path: Path, names: str, scheme: str, nodes: int
) -> None:
    """The oracle has the condition in its own words."""
    streams, rows = draw_rows(Shape(seed=11, sizes=(45,) * len(names), span=40, keys=5))
    pairs = list(pairwise(names))
    spec = QuerySpec(
        tuple(SourceSpec(name, name, range=3 * SECOND) for name in names),
        tuple(Item(f"{name}.u", name.lower()) for name in names),
        tuple(Condition(f"{one}.k - {two}.k BETWEEN -1 AND 1", (one, two)) for one, two in pairs),
    )
    sql = spec.cql()
    for one, two in pairs:
        assert f"{one}.k - {two}.k BETWEEN -1 AND 1" in sql
        sql = sql.replace(f"{one}.k - {two}.k BETWEEN -1 AND 1", f"is_beside({one}.k, {two}.k)")
    ms.predicate("is_beside", lambda a, b: pc.less_equal(pc.abs(pc.subtract(a, b)), 1), "BIGINT", "BIGINT")
    case, place = Case(streams, cut(streams, rows, (40, 70)), (Lifetime("q", spec),)), Place(tmp_path)
    for step, tables in enumerate(case.steps):
        for one in streams:
            place.feed(one.name, step, tables.get(one.name, one.schema.empty_table()))
    made = job(spark, place, streams, {}, lanes=2)
    finish(made.query("q", sql, None, ms.sinks.files(place.answers("q")), spread=scheme, nodes=nodes))
    answer = case.expected()["q"]
    assert answer.table.num_rows
    assert_each_step_same(place.by_step("q", len(case.steps)), answer, "q")
    spread = place.manifest().queries["q"].nodes
    assert spread is not None and len(spread.sent) == len(names) - 1 and all(spread.sent) and all(spread.bytes)


def test_the_cost_model_gives_a_query_with_little_to_do_one_node(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lengthening, "STEPS_BETWEEN", 2)
    case, place = spread_case({"q": BAND}, 30, 50, 70), Place(tmp_path)
    for step, tables in enumerate(case.steps):
        for one in STREAMS:
            place.feed(one.name, step, tables.get(one.name, one.schema.empty_table()))
    made = job(spark, place, STREAMS, {}, lanes=2)
    made.query("q", BAND.cql(), None, ms.sinks.files(place.answers("q")), spread="psp_d", nodes="auto")
    events = finish(made).events
    assert [(one.step, one.nodes) for one in events if isinstance(one, QuerySpread)] == [(2, 1)]
    assert_each_step_same(place.by_step("q", len(case.steps)), case.expected()["q"], "q")


def test_a_job_file_and_the_command_line_spread_queries(
    drivers: ForkedDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, files=2)
    monkeypatch.chdir(tmp_path)
    Path("job.toml").write_text(JOB.replace('plan = "((A B) C)"', 'spread = "psp_d"\nnodes = 4'))
    sql = "SELECT A.k AS k FROM A, B WHERE A.k <= B.k WINDOW 10 SECONDS"
    run = ("midstream", "run", "job.toml", "--once", "--cores", "2", "--json")
    first = drivers.run(*run)
    assert first.returncode == 0, first.stderr
    assert ms.open("ckpt").manifest().queries["triples"].nodes.nodes == 4  # type: ignore[union-attr]
    for command in (
        ("spread", "ckpt", "triples", "psp", "--nodes", "2"),
        ("add", "ckpt", "wide", sql, "--spread", "psp_i", "--nodes", "3"),
        ("add", "ckpt", "left", sql, "--spread", "auto", "--nodes", "auto"),
    ):
        assert midstream(*command).returncode == 0
    stranger = "SELECT A.k AS k FROM A, B WHERE nobody_knows(A.k, B.k) WINDOW 10 SECONDS"
    refused = midstream("add", "ckpt", "many", sql, "--spread", "psp", "--nodes", "1025")
    assert refused.returncode == 2 and "the number of nodes cannot be 1025" in refused.stderr
    assert "use 1 to 1024, or auto" in refused.stderr
    unknown = midstream("add", "ckpt", "asked", stranger, "--spread", "psp")
    assert unknown.returncode == 2 and "midstream.predicate('nobody_knows'" in unknown.stderr
    late = pa.table({"k": [7], "ts": pa.array([9_000_001], pa.timestamp("us")), "v": [9.0]})
    pq.write_table(late, "in/A/2.parquet")
    second = drivers.run(*run)
    assert second.returncode == 0, second.stderr
    found = {name: entry.nodes and (entry.nodes.scheme, entry.nodes.nodes)
             for name, entry in ms.open("ckpt").manifest().queries.items()}  # fmt: skip
    assert found == {"triples": ("psp", 2), "wide": ("psp_i", 3), "left": ("psp_d", 4)}
