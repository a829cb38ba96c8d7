"""Steps that bring nothing: once one has changed nothing, the next ones cost next to nothing, and mean the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import StepDone
from midstream.model.manifest import Manifest
from midstream.step import fold
from tests.unit.building import table

JOINED = "SELECT A.k, A.v FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
COUNTED = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 20 SECONDS EVERY 5 SECONDS"


def engine(*queries: str, **options: Any) -> ms.Engine:
    made = ms.Engine(**options)
    for name in ("A", "B"):
        made.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    for number, text in enumerate(queries):
        made.add_query(f"q{number}", text)
    return made


def rows(at: int) -> dict[str, pa.Table]:
    given = table([at] * 4, k=[1, 2, 3, 4], v=[0.5] * 4).select(["k", "ts", "v"])
    return {"A": given, "B": given}


def in_order(found: pa.Table) -> pa.Table:
    """Results of one time come in any order."""
    return found.sort_by([(name, "ascending") for name in found.column_names])


@pytest.mark.parametrize("queries", [(JOINED,), (COUNTED,), (JOINED, JOINED.replace("20", "9"), COUNTED)])
@pytest.mark.parametrize("lanes", [1, 3])
def test_answers_are_those_of_an_engine_that_never_waits(queries: tuple[str, ...], lanes: int) -> None:
    waits, other = engine(*queries, lanes=lanes), engine(*queries, lanes=lanes)
    for at in range(12):
        expected, found = other.push(rows(at)), waits.push(rows(at))
        assert {name: in_order(one) for name, one in found.items()} == {n: in_order(t) for n, t in expected.items()}
        for _ in range(4):
            nothing = waits.push({})
            assert {name: one.schema for name, one in nothing.items()} == {n: t.schema for n, t in expected.items()}
            assert not any(one.num_rows for one in nothing.values())
        assert waits.metrics()["state_rows"] <= other.metrics()["state_rows"]  # Those of the past are gone already.


def test_a_still_job_tells_of_each_step_and_counts_it() -> None:
    made = engine(JOINED)
    made.push(rows(1))
    for _ in range(3):
        made.push({})
    assert made.manifest.still
    before = made.manifest
    assert made.push({"A": rows(1)["A"].slice(0, 0)})["q0"].num_rows == 0
    assert made.manifest == replace(before, step=before.step + 1)
    last = [event for event in made.events if isinstance(event, StepDone)][-2:]
    assert last[1] == replace(last[0], step=last[0].step + 1)


def test_commands_and_rows_end_it() -> None:
    made = engine(JOINED)
    made.push(rows(1))
    for _ in range(3):
        made.push({})
    assert made.manifest.still
    made.add_query("later", COUNTED)
    assert "later" in made.push({}) and not made.manifest.still
    for _ in range(3):
        made.push({})
    assert made.push(rows(2))["q0"].num_rows == 12 and not made.manifest.still


@pytest.mark.parametrize("strategy", ["ghm", "gms", "gpt", "hybmig", "jisc", "moving_state", "parallel_track"])
def test_migrations_go_on_where_nothing_arrives(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = migrated(strategy)
    monkeypatch.setattr(fold, "brings_nothing", lambda *_: False)
    assert found == migrated(strategy)


def migrated(strategy: str) -> list[tuple[Manifest, object]]:
    """After each step of a migration amid silent steps, the manifest and the results."""
    names = ("A", "B", "C")
    made = ms.Engine()
    for name in names:
        made.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    text = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 6 SECONDS"
    made.add_query("q", text, plan="((A B) C)")
    made.optimize("q", mode="off")  # A step with nothing to do looks at no plan either.
    done = []
    for at in range(16):
        if at == 8:
            made.migrate("q", plan="(A (B C))", strategy=strategy)
        for batch in (dict.fromkeys(names, rows(at)["A"]), *[{}] * 5):
            results = made.push(batch)
            done.append((replace(made.manifest, still=False), results))
    return done


def test_it_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    made = engine(JOINED, checkpoint=tmp_path / "ckpt")
    made.push(rows(1))
    for _ in range(4):
        made.push({})
    step = made.manifest.step
    made.close()
    again = ms.Engine(checkpoint=tmp_path / "ckpt")
    assert again.manifest.step == step and again.manifest.still
    again.push({})
    assert again.push(rows(2))["q0"].num_rows == 12
