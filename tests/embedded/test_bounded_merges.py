"""A step writes few rows anew, however many its states hold: at most a constant times its own, or a fixed piece.

What is put off is put off by what the manifest lists alone, so that a step that is run again does the same.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pytest

from midstream.model.manifest import ChunkRef, Manifest
from midstream.runtime.lane import Lane
from tests.duck import database
from tests.embedded.merging_engine import SMALL, STEPS, STREAMS, WINDOW, main, tables, the_engine
from tests.embedded.test_kills import newest, run_and_kill


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "pace", SMALL)


@pytest.mark.parametrize("dying", [True, False], ids=["rows die", "rows stay"])
def test_a_step_writes_few_rows_anew(dying: bool) -> None:
    engine = the_engine(None, dying=dying)
    before, inserted, most, answers = set[str](), 0, 0, []
    for step in range(3 * STEPS):
        answers.append(engine.push(tables(step))["q"])
        listed = [chunk for chunks in states(engine.manifest).values() for chunk in chunks]
        written = sum([chunk.rows for chunk in listed if chunk.name not in before])
        before = {chunk.name for chunk in listed}
        taken_in = engine.manifest.queries["q"].counters.inserted
        made, inserted = taken_in - inserted, taken_in
        assert written <= made + max(SMALL.merging, SMALL.beside * made), f"step {step}"
        most = max(most, written - made)
    assert most > SMALL.merging // 2, "no merge was as large as it may be"
    for id, chunks in states(engine.manifest).items():
        rows = sum([chunk.rows for chunk in chunks])
        assert len(chunks) <= 2 * rows / SMALL.merging + 16, f"{id} has too many chunks to search"
    assert pa.concat_tables(answers).sort_by(ORDER).to_pylist() == expected(3 * STEPS, dying=dying)


def test_a_process_that_is_killed_amid_merges_does_the_step_again(tmp_path: Path) -> None:
    main(tmp_path / "undisturbed")
    for point in ("after_chunks:19", "before_manifest:20", "after_manifest:33", "before_manifest:47"):
        run_and_kill(tmp_path / "killed", point, "tests.embedded.merging_engine")
    main(tmp_path / "killed")
    assert shapes(newest(tmp_path / "killed")) == shapes(newest(tmp_path / "undisturbed"))
    for name in ("killed", "undisturbed"):
        found = pyarrow.dataset.dataset(tmp_path / name / "answers", partitioning="hive").to_table(columns=[*"abc"])
        assert found.sort_by(ORDER).to_pylist() == expected(STEPS, dying=True), name


ORDER = [(name, "ascending") for name in "abc"]


def states(manifest: Manifest) -> dict[object, tuple[ChunkRef, ...]]:
    """The chunks of each state of the only lane."""
    (lane,) = manifest.lane_states.values()
    return {id: listing.chunks for id, listing in lane.states.items()}


def shapes(manifest: Manifest) -> dict[object, list[tuple[int, int]]]:
    """The rows of each chunk of each state."""
    return {id: [(chunk.rows, chunk.first) for chunk in chunks] for id, chunks in states(manifest).items()}


def expected(steps: int, *, dying: bool) -> list[dict[str, int]]:
    """What DuckDB joins of all rows."""
    duck = database()
    for name in STREAMS:
        duck.register(name, pa.concat_tables([tables(step)[name] for step in range(steps)]))
    width = WINDOW * (1 if dying else 100)
    found = duck.sql(
        "SELECT A.u AS a, B.u AS b, C.u AS c FROM A JOIN B ON A.k = B.k JOIN C ON B.k = C.k WHERE "
        f"epoch_us(greatest(A.ts, B.ts, C.ts)) - epoch_us(least(A.ts, B.ts, C.ts)) <= {width} ORDER BY a, b, c"
    )
    return found.to_arrow_table().to_pylist()
