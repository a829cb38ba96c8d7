"""A user's operator in a job: its answers are those of the embedded engine, across a hand-over and a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from tests.crash_case import ROWS, STREAMS
from tests.property.rows import cut
from tests.spark.drive import Hooks, Place, finish, job, read_all

ALIVE, PACKED = (f"tests.unit.embedded.user_operators:{name}" for name in ("Alive", "Packed"))
SQL = "SELECT A.u AS a, B.u AS b FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS"
STEPS = cut(STREAMS, ROWS, (20, 40, 50, 60, 80))
MOVES = {
    1: Migrate("q", "(B A)", "ghm", {"budget": 250}, PACKED, {"by": "second"}),
    5: Migrate("q", "(A B)", "gms", {}, ALIVE, {"by": "third"}),
}


def embedded() -> list[dict[str, Any]]:
    engine = ms.Engine()
    for spec in STREAMS:
        engine.create_stream(
            spec.name,
            spec.schema,
            spec.timestamp,
            lateness=spec.lateness,
            idle_timeout=spec.idle_timeout,
            unit=spec.unit,
        )
    engine.add_query("q", SQL, operator=ALIVE, operator_options={"by": "first"})
    found: list[dict[str, Any]] = []
    for step, tables in enumerate(STEPS):
        if step in MOVES:
            move = MOVES[step]
            engine.migrate(
                "q", move.plan, move.strategy, operator=move.operator, operator_options=move.operator_options,
                **move.options,
            )  # fmt: skip
        found += engine.push(dict(tables))["q"].to_pylist()
    return found


def declared(spark: SparkSession, place: Place, by: str = "first", kind: str = ALIVE) -> ms.Job:
    made = job(spark, place, STREAMS, {"beside": SQL}, lanes=2)
    sink = ms.sinks.files(place.answers("q"))
    return made.query("q", SQL, sink=sink, operator=kind, operator_options={"by": by})


def feed(place: Place, *steps: int) -> None:
    for step in steps:
        for spec in STREAMS:
            place.feed(spec.name, step, STEPS[step].get(spec.name, spec.schema.empty_table()))


def test_its_answers_are_those_of_the_embedded_engine(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    place = Place(tmp_path)
    for step, move in MOVES.items():
        hooks.give(step, move)
    ended: list[tuple[str, int]] = []
    for steps in ((0, 1), (2, 3, 4, 5)):
        feed(place, *steps)
        last = finish(declared(spark, place))
        ended += [(e.strategy, e.step) for e in last.events if e.kind == "migration_ended"]
    assert [strategy for strategy, _ in ended] == ["ghm", "gms"]
    assert ended[0][1] > 1, "it was not under way at the restart"
    expected = embedded()
    found = read_all(place.answers("q")).to_pylist()
    assert found == expected
    assert {row["by"] for row in expected} == {"first", "second", "third"}
    assert place.manifest().queries["q"].group == "single"


def test_a_script_that_names_another_one_hands_over(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, 0, 1)
    finish(declared(spark, place))
    feed(place, 2, 3, 4, 5)
    run = finish(declared(spark, place, "second", PACKED))
    assert [(e.strategy, e.query) for e in run.events if e.kind == "migration_ended"] == [("gms", "q")]
    found = read_all(place.answers("q")).to_pylist()
    assert [row["by"] for row in found] == sorted(row["by"] for row in found)
    assert {row["by"] for row in found} == {"first", "second"}
    strip = [{k: v for k, v in row.items() if k != "by"} for row in found]
    assert strip == [{k: v for k, v in row.items() if k != "by"} for row in embedded()]


def test_what_goes_wrong_in_a_worker_names_the_operator(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    feed(place, *range(6))
    made = job(spark, place, STREAMS, {})
    sink = ms.sinks.files(place.answers("q"))
    made.query(
        "q", SQL, sink=sink, operator="tests.unit.embedded.user_operators:Failing", operator_options={"how": "raise"}
    )
    with pytest.raises(ms.QueryError, match=r"failed in feed: ValueError\('no such luck'\).*user_operators:Failing"):
        finish(made)
    with pytest.raises(ms.QueryError, match="cannot be imported"):
        job(spark, place, STREAMS, {}).query("q", SQL, operator="nowhere:All")
