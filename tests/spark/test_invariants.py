"""The invariants on Spark, on fixed cases against the oracle: any plan, migration, lanes or restart, one answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.model.events import LanesRescaled, MigrationEnded
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, Subtrahend
from tests.property.drive import Action, Case, Migrate, Rescale, Restart
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import Hooks, Place, check_case

IN_ORDER = Shape(seed=5, sizes=(60, 60, 60), span=20, keys=4, skew=True)
DISORDERED = Shape(seed=6, sizes=(60, 60, 60), span=20, keys=4, disorder=4, leads=(0, 3, 20), slack=1, jitter=True)


def case(shape: Shape, *queries: Lifetime, cuts: tuple[int, ...] = (20, 40, 60, 80)) -> Case:
    streams, rows = draw_rows(shape)
    return Case(streams, cut(streams, rows, cuts), queries, shape.in_order)


def sources(*names: str, seconds: int = 5) -> tuple[SourceSpec, ...]:
    return tuple(SourceSpec(name, name, range=seconds * SECOND) for name in names)


def items(*texts: str) -> tuple[Item, ...]:
    return (*(Item(text, f"c{n}") for n, text in enumerate(texts)), Item("_ts"))


ONE_KEY = QuerySpec(
    sources("A", "B", "C"),
    items("A.u", "B.u", "C.u", "A.m", "B.s", "C.ts"),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C")), Condition("A.n > 0", ("A",))),
)
"""Spread over lanes, with a selection that Spark can check."""

TWO_KEYS = QuerySpec(
    sources("A", "B", "C"),
    items("A.u", "B.u", "C.u"),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.s = C.s", ("B", "C")), Condition("A.d <= C.d", ("A", "C"))),
)
"""No common key: one lane."""

BAND = QuerySpec(sources("A", "B", seconds=3), items("A.u", "B.u"), (Condition("ABS(A.d - B.d) < 0.75", ("A", "B")),))

ODD_KEY = QuerySpec(sources("A", "B"), items("A.u", "B.day"), (Condition("LOWER(A.s) = LOWER(B.s)", ("A", "B")),))
"""A key that only Python evaluates as the language does."""

COUNTED = QuerySpec(
    (SourceSpec("A", "A", rows=7), SourceSpec("B", "B", range=4 * SECOND)),
    items("A.u", "B.u"),
    (Condition("A.k = B.k", ("A", "B")),),
)

TWINS = QuerySpec(
    (SourceSpec("x", "A", range=2 * SECOND), SourceSpec("y", "A", range=6 * SECOND)),
    items("x.u", "y.u"),
    (Condition("x.k = y.k", ("x", "y")), Condition("x.u < y.u", ("x", "y"))),
)

GROUPED = QuerySpec(
    sources("A", "B"),
    (
        Item("A.k", "k"),
        Item("COUNT(*)", "n"),
        Item("SUM(B.n)", "total"),
        Item("AVG(B.d)", "mean", approximate=True),
        Item("_ts"),
    ),
    (Condition("A.k = B.k", ("A", "B")),),
    group_by=("A.k",),
    every=2 * SECOND,
)

EXCEPT = QuerySpec(
    (SourceSpec("A", "A", range=4 * SECOND),),
    items("A.u", "A.k"),
    subtracted=(Subtrahend(SourceSpec("B", "B", range=3 * SECOND), ("k",)),),
)

ALL = (ONE_KEY, TWO_KEYS, BAND, ODD_KEY, COUNTED, TWINS, GROUPED, EXCEPT)
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: A C | C: B A]")


def lives(*specs: QuerySpec) -> tuple[Lifetime, ...]:
    return tuple(Lifetime(f"q{n}", spec) for n, spec in enumerate(specs))


@pytest.mark.parametrize("shape", [IN_ORDER, DISORDERED], ids=["in order", "disordered"])
@pytest.mark.parametrize("lanes", [1, 3])
def test_every_kind_of_query(spark: SparkSession, hooks: Hooks, tmp_path: Path, shape: Shape, lanes: int) -> None:
    check_case(spark, hooks, tmp_path, case(shape, *lives(*ALL)), lanes=lanes)


def test_rows_are_dealt_to_lanes(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    asked = case(DISORDERED, *lives(ONE_KEY, BAND, ODD_KEY))
    check_case(spark, hooks, tmp_path, asked, lanes=3)
    progress = Place(tmp_path).manifest().progress
    pushed = {name: sum(step[name].num_rows for step in asked.steps if name in step) for name in progress}
    assert {name: one.rows + one.late + one.rejected for name, one in progress.items()} == pushed


def test_every_plan_gives_the_same_answer(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    asked = lives(*[ONE_KEY] * 4, *[TWO_KEYS] * 4)
    plans = {life.name: PLANS[n % 4] for n, life in enumerate(asked)}
    check_case(spark, hooks, tmp_path, case(DISORDERED, *asked), plans, lanes=2)


def test_relation_operators_amid_migrations(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    left = replace(ONE_KEY, relation="DSTREAM")
    asked = lives(left, replace(COUNTED, relation="DSTREAM"), replace(TWO_KEYS, relation="RSTREAM", every=2 * SECOND))
    actions: list[Action] = [Migrate(1, "q0", "(A (B C))", "jisc"), Restart(3), Migrate(3, "q2", "((A C) B)", "hybmig")]
    check_case(spark, hooks, tmp_path, case(DISORDERED, *asked), actions=actions, lanes=3)


def test_migrations_change_no_answer(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    asked = lives(ONE_KEY, TWO_KEYS, GROUPED)
    actions: list[Action] = [
        Migrate(1, "q0", "(A (B C))", "moving_state"),
        Migrate(2, "q0", "((A C) B)", "moving_state"),
        Migrate(2, "q0", "[A: B C | B: A C | C: A B]", "moving_state"),
        Migrate(3, "q0", "((A B) C)", "moving_state"),
        Migrate(3, "q1", "(A (B C))", "moving_state"),
        Migrate(3, "q2", "(B A)", "moving_state"),
    ]
    events = check_case(spark, hooks, tmp_path, case(IN_ORDER, *asked), actions=actions, lanes=2)
    assert {e.query for e in events if isinstance(e, MigrationEnded)} == {"q0", "q1", "q2"}


@pytest.mark.parametrize("cuts", [(), (50,), (3, 10, 11, 30, 70, 98)])
def test_cuts_and_lanes_change_no_answer(
    spark: SparkSession,
    hooks: Hooks,
    tmp_path: Path,
    cuts: tuple[int, ...],
) -> None:
    whole = case(IN_ORDER, *lives(ONE_KEY, TWO_KEYS, COUNTED, EXCEPT), cuts=cuts)
    rescales: list[Action] = [
        Rescale(step, lanes) for step, lanes in ((1, 5), (2, 2), (3, 1), (4, 3)) if step <= len(cuts)
    ]
    events = check_case(spark, hooks, tmp_path, whole, actions=rescales, lanes=2)
    assert len([e for e in events if isinstance(e, LanesRescaled)]) == len(rescales)


def test_queries_come_and_go_beside_a_query(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    asked = (
        Lifetime("q0", ONE_KEY),
        Lifetime("late", ONE_KEY, 2),  # the same, but it has not seen what came before
        Lifetime("brief", TWO_KEYS, 1, 3),
        Lifetime("wide", GROUPED, 2),  # reads columns that were not carried before
        Lifetime("gone", COUNTED, 0, 3),
    )
    check_case(spark, hooks, tmp_path, case(DISORDERED, *asked), lanes=2)


@pytest.mark.parametrize("sharing", ["auto", "off"])
def test_restarts_change_no_answer(spark: SparkSession, hooks: Hooks, tmp_path: Path, sharing: str) -> None:
    asked = lives(ONE_KEY, GROUPED, EXCEPT, COUNTED)
    actions: list[Action] = [Restart(1), Restart(3), Migrate(3, "q0", "(A (B C))", "moving_state")]
    check_case(spark, hooks, tmp_path, case(DISORDERED, *asked), actions=actions, lanes=2, sharing=sharing)
