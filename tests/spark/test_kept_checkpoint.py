"""A checkpoint of a job on Spark, of the present format, as the code that brought it wrote it, is taken up and goes on.

`MIDSTREAM_KEEP=write` writes the archive, as it does in `tests/embedded/test_kept_checkpoint.py`, which says when.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from midstream.model.manifest import FORMAT_VERSION
from tests.embedded.test_kept_checkpoint import JOINED, QUERIES, WROTE, relocated, rows
from tests.oracle.compare import difference
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Hooks, Place, finish, job
from tests.unit.building import COLUMNS

ARCHIVE = Path(__file__).with_name(f"kept_format_{FORMAT_VERSION}.tar.xz")
SAVED, STEPS = 4, 9
SPECS = [StreamSpec(stream, COLUMNS, "ts", 2_000_000) for stream in "ABC"]
ASKED = {name: QUERIES[name] for name in ("wide", "narrow", "counted", "outer", "over", "cast")}
MOVED = Migrate("wide", "(A (B C))", "parallel_track")
PLAN = "((A B) C)"


def declared(spark: SparkSession, place: Place) -> ms.Job:
    plans = {name: PLAN for name, sql in ASKED.items() if JOINED in sql}
    return job(spark, place, SPECS, ASKED, plans=plans, lanes=2)


def feed(place: Place, steps: range) -> None:
    for step in steps:
        place.feed_together(step, {stream: rows(step, stream) for stream in "ABC"})


def write(spark: SparkSession, hooks: Hooks, place: Place) -> None:
    """Keep the checkpoint of a job amid a migration."""
    feed(place, range(SAVED))
    hooks.give(3, MOVED)
    finish(declared(spark, place))
    assert place.manifest().queries["wide"].migrations
    moved(place.root, str(place.root), WROTE)
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for folder in ("checkpoint", "answers"):
            for path in sorted(path for path in (place.root / folder).rglob("*") if path.is_file()):
                tar.add(path, str(path.relative_to(place.root)))


def moved(root: Path, old: str, new: str) -> None:
    """Make a job's checkpoint that of one which ran in another folder: Spark's own log names what it has read."""
    relocated(root / "checkpoint", old, new)
    for path in (root / "checkpoint" / "spark").rglob("*"):
        if path.is_file() and path.suffix != ".crc":
            path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def test_it_is_taken_up_and_goes_on(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    if os.environ.get("MIDSTREAM_KEEP") == "write":
        write(spark, hooks, Place(tmp_path / "made"))
    place = Place(tmp_path / "kept")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(place.root, filter="data")
    moved(place.root, WROTE, str(place.root))
    feed(place, range(STEPS))
    assert place.manifest().step == SAVED - 1
    finish(declared(spark, place))
    assert place.manifest().step == STEPS - 1 and not place.manifest().queries["wide"].migrations
    twin = ms.Engine(lanes=2)
    for spec in SPECS:
        twin.create_stream(spec.name, spec.schema, timestamp="ts", lateness=spec.lateness)
    for name, sql in ASKED.items():
        twin.add_query(name, sql, PLAN if JOINED in sql else None)
    for step in range(STEPS):
        answers = twin.push({stream: rows(step, stream) for stream in "ABC"})
        for query, expected in answers.items():
            found = place.by_step(query, STEPS)[step]
            found = expected.slice(0, 0) if found is None else found
            assert not (problem := difference(found, expected)), f"{query} step {step}: {problem}"
