"""A step in which a join is about to make far more rows than usual is broken off and done by another plan."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import midstream as ms
from midstream.model.events import MigrationBegun, StepDone
from tests.duck import database
from tests.optimizer.drifting import engine, query, reviews, rows

NAMES, FIRST, EXPLODES, STEPS = "ABCD", "(((B C) A) D)", 8, 10
SPARSE = dict.fromkeys(NAMES, 40_000)
HOT, HOT_ROWS = -1, 18


def batch(step: int) -> dict[str, pa.Table]:
    """A hot key is in A and B, and from one step on in B and C: then C meets all that A and B have of it."""
    found = rows(step, SPARSE, rate=150)
    for name in "BC" if step >= EXPLODES else "AB":
        table = found[name]
        keys = np.where(np.arange(len(table)) < HOT_ROWS, HOT, table["k"].to_numpy())
        found[name] = table.set_column(0, "k", pa.array(keys))
    # One row of D makes some of it a result.
    if step == STEPS - 1:
        found["D"] = found["D"].set_column(0, "k", pc.fill_null(pa.array([HOT, *found["D"]["k"].to_pylist()[1:]]), 0))
    return found


def started(mode: str, plan: str = FIRST, **options: object) -> ms.Engine:
    made = engine(NAMES, plan, **options)
    made.optimize(mode=mode)
    return made


def work(made: ms.Engine) -> int:
    return made.manifest.totals.inserted + made.manifest.totals.comparisons


def moves(made: ms.Engine) -> list[tuple[int, str]]:
    return [(event.step, event.new) for event in made.events if isinstance(event, MigrationBegun)]


def counted(answers: Sequence[pa.Table]) -> tuple[int, int]:
    found = pa.concat_tables(answers)["k"]
    return len(found), pc.sum(found).as_py()


def duckdbs() -> tuple[int, int]:
    given = database()
    for name in NAMES:
        given.register(name, pa.concat_tables(batch(step)[name] for step in range(STEPS)))
    times = ", ".join(f"{name}.ts" for name in NAMES)
    (found,) = given.sql(
        "SELECT count(*), sum(A.k)::BIGINT FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k"
        f" AND greatest({times}) - least({times}) <= INTERVAL 10 SECONDS"
    ).fetchall()
    return found[0], found[1]


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_plan_is_left_in_the_very_step_in_which_it_would_make_millions_of_rows(lanes: int) -> None:
    auto, kept = started("auto", lanes=lanes, threads=2), started("off")
    answers = list[pa.Table]()
    for step in range(STEPS):
        before = work(auto), work(kept)
        answers.append(auto.push(batch(step))["q"])
        kept.push(batch(step))
        if step == EXPLODES:
            done = [now - then for now, then in zip((work(auto), work(kept)), before, strict=True)]
            assert done[0] < done[1] / 2, "it moves before the rows are made"
    assert [step for step, _ in moves(auto)][:1] == [EXPLODES]
    told = sum(event.comparisons for event in auto.events if isinstance(event, StepDone))
    assert auto.manifest.totals.comparisons > told + 100_000, "what was done in vain counts as done"
    assert counted(answers) == duckdbs()


def test_only_auto_breaks_a_step_off_and_only_where_another_plan_may_be_taken() -> None:
    for mode in ("suggest", "off", "auto"):
        made = started(mode)
        made.push(batch(0))
        if mode == "auto":
            made.pin("q")
        for step in range(1, EXPLODES + 1):
            made.push(batch(step))
        told = sum(event.comparisons for event in made.events if isinstance(event, StepDone))
        assert made.manifest.totals.comparisons == told and not moves(made)


def test_a_step_that_no_plan_does_with_less_is_done_in_full_and_not_broken_off_again() -> None:
    made = started("auto")
    made.optimize("q", mode="auto", allow=[FIRST, "(((A B) C) D)"])
    for step in range(STEPS):
        made.push(batch(step))
    assert not moves(made) or moves(made)[0][0] > EXPLODES
    assert [event.step for event in reviews(made.events)][:1] == [EXPLODES]
    assert work(made) > 500_000


def test_a_step_that_is_done_again_after_a_kill_decides_the_same_also_by_pieces(tmp_path: Path) -> None:
    folder, before = tmp_path / "checkpoint", tmp_path / "before"
    answers = list[pa.Table]()
    with ms.Engine(checkpoint=str(folder)) as made:
        for name in NAMES:
            made.create_stream(name, batch(0)[name].schema, timestamp="ts")
        made.add_query("q", query(NAMES), plan=FIRST)
        made.optimize(mode="auto")
        answers += [made.push(batch(step))["q"] for step in range(EXPLODES)]
    shutil.copytree(folder, before)
    found = []
    for returns in (False, True):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        with ms.Engine(checkpoint=str(folder)) as made:
            given = [made.push(batch(step), returns=returns) for step in range(EXPLODES, STEPS)]
            found.append((made.manifest.totals, made.manifest.optimizations, made.manifest.queries["q"].plan))
            told = made.manifest.totals.comparisons
    assert found[0] == found[1] and told > 100_000
    assert found[0][1]["q"].reviewed_in >= EXPLODES and found[0][2] != FIRST
    answers += [tables["q"] for tables in given]
    assert counted(answers) == duckdbs()
