"""The checkpoint of a job that earlier code ran, killed amid its migrations, is taken up and goes on exact."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.checkpoints.course import fingerprint
from tests.checkpoints.kept import ROOT, relocate, unpack
from tests.checkpoints.spark_job import CASE, SAVED, commands, feed, the_job
from tests.oracle.compare import difference
from tests.sharing.drive import run
from tests.sharing.judge import Judge
from tests.spark.drive import Hooks, Place, finish

STEPS = len(CASE.steps)


def test_it_goes_on_exact(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """Each step of each sink is what the oracle says, also of the step that was committed and not delivered."""
    kept, place = unpack("spark", tmp_path), Place(tmp_path)
    assert fingerprint(CASE.steps) == kept.notes["input"], "the rows are no longer those it was made of"
    relocate(tmp_path, ROOT, str(tmp_path))
    assert place.manifest().step == SAVED - 1
    assert place.by_step("whole", STEPS)[SAVED - 1] is None
    feed(tmp_path)
    for step in range(SAVED + 1, STEPS):
        for command in commands(tmp_path, step):
            hooks.give(step, command)
    finish(the_job(spark, tmp_path))
    assert (place.manifest().step, place.manifest().lanes) == (STEPS - 1, 3)
    embedded = run(CASE)
    Judge(CASE, embedded).check()
    expected: dict[str, dict[int, pa.Table]] = {}
    for segment in embedded.segments:
        expected.setdefault(segment.query, {}).update(enumerate(segment.tables, start=segment.begin))
    for query, steps in expected.items():
        recorded = kept.answers[query]
        for step, found in enumerate(place.by_step(query, STEPS)):
            wanted = steps.get(step, next(iter(steps.values())).slice(0, 0))
            problem = difference(wanted.slice(0, 0) if found is None else found, wanted)
            assert not problem, f"{query} step {step}: {problem}"
            if step in recorded:
                assert not difference(recorded[step], wanted), f"the record of {query} in step {step}"
