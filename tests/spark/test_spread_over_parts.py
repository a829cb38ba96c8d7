"""On Spark a join is spread over nodes also where its text has parts that run before it, in lanes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from tests.property.drive import start
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import Place, finish, job, read_all

NAMES = pa.table({"k": [0, 1, 2], "name": ["zero", "one", "two"]})
W = "[RANGE 3 SECONDS]"
TEXTS = {
    "a static table": f"SELECT names.name, A.u, B.u AS b FROM A {W}, B {W}, names WHERE A.n < B.n AND A.k = names.k",
    "a subquery": (
        f"SELECT x.u, C.u AS c FROM (SELECT A.u + B.u AS u, A.n AS n FROM A {W}, B {W} WHERE A.k = B.k) {W} AS x, "
        f"C {W} WHERE x.n < C.n"
    ),
    "an aggregate": (
        "SELECT x.most, C.u AS c FROM (SELECT k, MAX(u) AS most FROM A GROUP BY k, TUMBLE(ts, INTERVAL 2 SECONDS)) "
        f"{W} AS x, C {W} WHERE x.k <= C.k"
    ),
}


@pytest.mark.parametrize("part", TEXTS)
def test_answers_are_those_of_lanes(spark: SparkSession, tmp_path: Path, part: str) -> None:
    streams, sequence = draw_rows(Shape(seed=11, sizes=(40, 40, 30), span=12, keys=3, disorder=2, slack=1))
    steps, place = cut(streams, sequence, (30, 60, 80)), Place(tmp_path)
    for step, tables in enumerate(steps):
        for spec in streams:
            place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))
    made = job(spark, place, streams, {}, lanes=2, tables={"names": NAMES})
    made.query("q", TEXTS[part], None, ms.sinks.files(place.answers("q")), spread="psp_d", nodes=3)
    finish(made)
    engine, expected = start(streams), list[str]()
    engine.table("names", NAMES)
    engine.add_query("q", TEXTS[part])
    for tables in steps:
        expected += map(str, engine.push(dict(tables))["q"].to_pylist())
    nodes = place.manifest().queries["q"].nodes
    assert nodes is not None and sum(work.comparisons for work in nodes.work)
    assert sorted(map(str, read_all(place.answers("q")).to_pylist())) == sorted(expected) != []
