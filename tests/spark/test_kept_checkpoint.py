"""The checkpoint of a job that earlier code ran, killed amid its migrations, is taken up and goes on exact."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.checkpoints import early
from tests.checkpoints.course import fingerprint
from tests.checkpoints.kept import ROOT, relocate, unpack
from tests.checkpoints.spark_job import CASE, LANES, SAVED
from tests.oracle.compare import difference
from tests.sharing.drive import run
from tests.sharing.judge import Judge
from tests.spark.drive import Hooks, Place, finish
from tests.spark.shared_case import commands, feed, job_of

EARLY = early.courses()["held"].case
KEPT = {"spark_at_367217f": (1, EARLY), "spark": (2, CASE), "spark of format 3": (3, CASE)}


@pytest.mark.parametrize("name", KEPT)
def test_it_goes_on_exact(spark: SparkSession, hooks: Hooks, tmp_path: Path, name: str) -> None:
    """Each step of each sink is what the oracle says, also of the step that was committed and not delivered."""
    version, case = KEPT[name]
    steps = len(case.steps)
    kept, place = unpack(name.partition(" ")[0], tmp_path, version), Place(tmp_path)
    assert fingerprint(case.steps) == kept.notes["input"], "the rows are no longer those it was made of"
    relocate(tmp_path, ROOT, str(tmp_path))
    assert place.manifest().step == SAVED - 1
    assert place.by_step("whole", steps)[SAVED - 1] is None
    feed(tmp_path, case)
    for step in range(SAVED + (version > 1), steps):
        for command in commands(tmp_path, step, case):
            hooks.give(step, command)
    finish(job_of(spark, tmp_path, case, LANES))
    assert (place.manifest().step, place.manifest().lanes) == (steps - 1, 3)
    embedded = run(case)
    Judge(case, embedded).check()
    expected: dict[str, dict[int, pa.Table]] = {}
    for segment in embedded.segments:
        expected.setdefault(segment.query, {}).update(enumerate(segment.tables, start=segment.begin))
    for query, tables in expected.items():
        recorded = kept.answers.get(query, {})
        for step, found in enumerate(place.by_step(query, steps)):
            wanted = tables.get(step, next(iter(tables.values())).slice(0, 0))
            problem = difference(wanted.slice(0, 0) if found is None else found, wanted)
            assert not problem, f"{query} step {step}: {problem}"
            if step in recorded:
                assert not difference(recorded[step], wanted), f"the record of {query} in step {step}"
