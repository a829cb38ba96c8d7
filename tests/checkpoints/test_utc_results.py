"""A job that began when all times of results were in UTC goes on with the types that it began with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from tests.checkpoints.kept import Kept, unpack
from tests.checkpoints.utc_results import NAME, QUERIES, SAVED, STEPS, VERSION, begun, rows

ZONED = pa.timestamp("us", "UTC")


def assert_same(found: pa.Table, kept: pa.Table, where: str) -> None:
    """Equal rows of equal types, by time; those of one time come in any order."""
    assert found.schema.equals(kept.schema), where
    for time in {"t", "_ts"} & {*found.column_names}:
        times = found[time].to_pylist()
        assert (time == "t" and "_ts" in found.column_names) or times == sorted(times), where
    order = [(name, "ascending") for name in found.column_names]
    assert found.sort_by(order).equals(kept.sort_by(order)), where


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return unpack(NAME, tmp_path / "kept", VERSION)


@pytest.mark.parametrize("saved_again", [False, True])
def test_it_answers_as_the_code_that_wrote_it(kept: Kept, tmp_path: Path, saved_again: bool) -> None:
    """The same rows of the same types, to the end; also out of a checkpoint that the present code wrote."""
    engine = ms.Engine.load(kept.checkpoint)
    assert set(QUERIES) <= engine.manifest.queries.keys() and engine.manifest.rules.utc_results
    for step in range(SAVED, STEPS):
        if saved_again and step == SAVED + 1:
            engine.save(tmp_path / "again")
            engine = ms.Engine.load(tmp_path / "again")
        for query, table in engine.push(rows(step)).items():
            assert_same(table, kept.answers[query][step], f"{query} step {step}")
    assert engine.late["A"].equals(kept.answers["late"][STEPS])
    assert engine.dead_letters["failing"].equals(kept.answers["rejected"][STEPS])


def test_a_query_that_is_added_to_it_has_such_types_too(kept: Kept) -> None:
    engine = ms.Engine.load(kept.checkpoint)
    engine.add_query("more", "SELECT k, _ts FROM A")
    assert engine.push(rows(SAVED))["more"].schema.field("_ts").type == ZONED


def test_a_job_that_begins_now_has_the_types_of_its_streams_and_the_same_rows(kept: Kept) -> None:
    engine = begun()
    for step in range(STEPS):
        for query, table in engine.push(rows(step)).items():
            before = kept.answers[query][step]
            plain = [pa.timestamp("us") if kind == ZONED else kind for kind in before.schema.types]
            assert table.schema.types == plain and ZONED in before.schema.types
            assert_same(table.cast(before.schema), before, f"{query} step {step}")
