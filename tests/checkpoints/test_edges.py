"""A job from before values beyond the edges of types made dead letters goes on with NULL, and with its states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import LanguageError
from midstream.model.language_rules import LanguageRules
from tests.checkpoints.edges import NAME, QUERIES, SAVED, STEPS, VERSION, begun, rows
from tests.checkpoints.kept import Kept, unpack
from tests.checkpoints.test_utc_results import assert_same

FAILING = {"filtered", "keyed", "between", "three", "times", "grouped", "outer", "shown"}
"""The queries for which something cannot be evaluated by the rule of today."""


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return unpack(NAME, tmp_path / "kept", VERSION)


def check(kept: Kept, step: int, answers: Mapping[str, pa.Table]) -> None:
    assert answers.keys() <= QUERIES.keys()
    for query, table in answers.items():
        assert_same(table, kept.answers[query][step], f"{query} step {step}")


@pytest.mark.parametrize("saved_again", [False, True])
def test_it_answers_as_the_code_that_wrote_it(kept: Kept, tmp_path: Path, saved_again: bool) -> None:
    """Nothing is a dead letter, no state is dropped, and nothing is computed that was not."""
    engine = ms.Engine.load(kept.checkpoint)
    assert engine.manifest.queries.keys() == QUERIES.keys() and engine.manifest.rules == LanguageRules(edges=False)
    for step in range(SAVED, STEPS):
        if saved_again and step == SAVED + 1:
            engine.save(tmp_path / "again")
            engine = ms.Engine.load(tmp_path / "again")
        check(kept, step, engine.push(rows(step)))
    assert not engine.dead_letters
    assert {name: engine.metrics()[name] for name in kept.notes} == dict(kept.notes)


def test_a_query_that_is_added_to_it_keeps_its_rule(kept: Kept) -> None:
    """So it may share what others hold, and a text stands for one thing only."""
    engine = ms.Engine.load(kept.checkpoint)
    engine.add_query("more", QUERIES["shown"])
    engine.add_query("none", QUERIES["never"])
    found = engine.push(rows(SAVED))
    assert_same(found["more"], kept.answers["shown"][SAVED], "more")
    assert_same(found["none"], kept.answers["never"][SAVED], "none")
    assert not engine.dead_letters


def test_an_engine_of_either_rule_beside_the_other(kept: Kept) -> None:
    """In one process, step by step, over the same rows: what is remembered of a text is not taken for the other's."""
    former, present = ms.Engine.load(kept.checkpoint), begun()
    for step in range(STEPS):
        found = present.push(rows(step))
        if step >= SAVED:
            check(kept, step, former.push(rows(step)))
        for query in {"beside", "three"} & found.keys():
            assert_same(found[query], kept.answers[query][step], f"{query} step {step}")
    assert not former.dead_letters
    assert {name for name, entry in present.manifest.queries.items() if entry.rejects} == FAILING
    assert {name.removeprefix("query ") for name in present.dead_letters} == FAILING


def test_a_job_that_begins_now_refuses_what_no_value_can_be_cast_to() -> None:
    with pytest.raises(LanguageError, match="no DATE can be cast to TIME"):
        begun().add_query("never", QUERIES["never"])
