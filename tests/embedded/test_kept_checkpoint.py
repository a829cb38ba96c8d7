"""A checkpoint of the present format, as the code that brought it wrote it, opens and goes on with the right answers.

`MIDSTREAM_KEEP=write pytest` of this file writes the archive. Do so only with a new format, which comes with a version
of midstream and an entry in the changelog. Until 0.2.0 is uploaded, do so too where what a checkpoint holds is meant to
change.
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.model.manifest import FORMAT_VERSION
from midstream.storage.disk import seal
from tests.oracle.compare import difference
from tests.unit.building import DDL, table

ARCHIVE = Path(__file__).with_name(f"kept_format_{FORMAT_VERSION}.tar.xz")
WROTE = "/kept"
"""The folder in which the kept job seems to have run, by the paths that its checkpoint names."""

SAVED, STEPS = 5, 9
JOINED = "FROM A, B, C WHERE A.k = B.k AND B.j = C.j"
QUERIES = {
    "wide": f"SELECT A.k, B.j, C.v {JOINED} WINDOW 30 SECONDS",
    "narrow": f"SELECT A.k, B.j, C.v {JOINED} AND A.v > 0 WINDOW 20 SECONDS",
    "moved": f"SELECT A.k, C.s {JOINED} AND A.j = C.k WINDOW 25 SECONDS",
    "counted": "SELECT k, COUNT(*) AS n, SUM(j) AS j FROM A GROUP BY k, TUMBLE(ts, INTERVAL 20 SECONDS)",
    "outer": "SELECT A.k, B.v FROM A LEFT JOIN B ON A.k = B.k WINDOW 10 SECONDS",
    "over": "SELECT w.k, COUNT(*) AS n FROM wide AS w GROUP BY w.k, SESSION(_ts, INTERVAL 5 SECONDS)",
    "named": "SELECT A.k, T.name FROM A JOIN T ON A.k = T.k",
    "cast": "SELECT k, CAST(s AS INT) AS i FROM B",
    "spread": "SELECT A.k, B.k AS other FROM A, B WHERE A.v + B.v > 3 WINDOW 10 SECONDS",
}
LATER = {"waits": f"SELECT C.k {JOINED} WINDOW 15 SECONDS"}


def rows(step: int, stream: str) -> pa.Table:
    """The rows of a step; some are late."""
    seed = [3 * step + "ABC".index(stream) + 7 * row for row in range(6)]
    late = [50 if step > 2 and row == 5 else 0 for row in range(6)]
    times = [10 * step + row - late[row] for row in range(6)]
    texts = [str(n) if n % 4 else f"x{n}" for n in seed]
    return table(times, k=[n % 3 for n in seed], j=[n % 4 for n in seed], s=texts, v=[n % 5 - 1.0 for n in seed])


def push(engine: ms.Engine, step: int) -> dict[str, pa.Table]:
    if step == 3:
        engine.migrate("wide", "(A (B C))", "parallel_track")
        engine.migrate("moved", "(A (B C))", "gpt")
    return engine.push({stream: rows(step, stream) for stream in "ABC"})


def begun(engine: ms.Engine) -> ms.Engine:
    for stream in "ABC":
        engine.create_stream(stream, DDL, timestamp="ts", lateness=2_000_000)
    engine.table("T", pa.table({"k": [0, 1], "name": ["none", "one"]}))
    for name, sql in QUERIES.items():
        over = {"spread": "psp_d", "nodes": 2} if name == "spread" else {}
        engine.add_query(name, sql, "((A B) C)" if JOINED in sql else None, **over)
    return engine


def relocated(folder: Path, old: str, new: str) -> None:
    """Make a checkpoint that of a job which ran in another folder: its sinks are below it."""
    for path in folder.rglob("*.json"):
        path.write_bytes(seal(json.loads(path.read_text().replace(old, new))["value"]))


def write(folder: Path) -> None:
    """Keep the checkpoint of a job amid two migrations, with a savepoint, and a command that no step has taken."""
    with begun(ms.Engine(checkpoint=folder / "checkpoint", lanes=2)) as engine:
        for step in range(SAVED):
            push(engine, step)
        assert engine.manifest.queries["wide"].migrations and engine.manifest.queries["moved"].migrations
    ms.open(folder / "checkpoint").savepoint("kept", 2)
    (name, sql) = next(iter(LATER.items()))
    assert main(["add", str(folder / "checkpoint"), name, sql]) == 0
    relocated(folder / "checkpoint", str(folder), WROTE)
    with tarfile.open(ARCHIVE, "w:xz") as tar:
        for path in sorted(path for path in (folder / "checkpoint").rglob("*") if path.is_file()):
            tar.add(path, str(path.relative_to(folder)))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    if os.environ.get("MIDSTREAM_KEEP") == "write":
        write(tmp_path / "made")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(tmp_path, filter="data")
    relocated(tmp_path / "checkpoint", WROTE, str(tmp_path))
    return tmp_path / "checkpoint"


def test_it_opens_and_goes_on(kept: Path) -> None:
    twin = begun(ms.Engine(lanes=2))
    for step in range(SAVED):
        push(twin, step)
    twin.add_query("waits", LATER["waits"])
    assert ms.open(kept).report().step == SAVED - 1
    with ms.Engine(checkpoint=kept) as engine:
        for step in range(SAVED, STEPS):
            found, expected = push(engine, step), push(twin, step)
            assert found.keys() == expected.keys() >= QUERIES.keys() | LATER.keys()
            for query, answer in expected.items():
                assert not (problem := difference(found[query], answer)), f"{query} step {step}: {problem}"
        assert not any(entry.migrations for entry in engine.manifest.queries.values())
        assert engine.metrics()["state_rows"] == twin.metrics()["state_rows"]
        late = {stream: table.num_rows for stream, table in twin.late.items()}
        assert {name: progress.late for name, progress in engine.manifest.progress.items()}.items() >= late.items()


def test_it_goes_back_and_is_forked(kept: Path, tmp_path: Path) -> None:
    checkpoint = ms.open(kept)
    assert checkpoint.savepoints == {"kept": 2}
    assert checkpoint.fork("kept", tmp_path / "fork")
    assert checkpoint.rewind(3).step == 3
    for folder, step in ((kept, 3), (tmp_path / "fork", 2)):
        with ms.Engine(checkpoint=folder) as engine:
            assert engine.manifest.step == step
            assert engine.push({stream: rows(step + 1, stream) for stream in "ABC"}).keys() >= QUERIES.keys()
