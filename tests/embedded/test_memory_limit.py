"""A limit of memory: what is refused, with what remedy, and that a child process stays below it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.cli.main import main as cli
from midstream.model.errors import InputError
from midstream.sql.job_file import read_job_file
from midstream.storage.memory_limit import MemoryLimit
from tests.embedded.crash_engine import CASE, main
from tests.unit.state.chunk_files import linux_only

pytestmark = linux_only

MB = 10**6
MORE = 256 * MB
"""What a process may hold beyond its limit: a step's merges, and what allocators keep."""


def limited(root: Path, more: int) -> ms.Engine:
    """An engine that may take so many bytes more than this process holds."""
    engine = ms.Engine(checkpoint=root / "ckpt", durable=False, memory=MemoryLimit(1).held() + more)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    engine.add_query("q", "SELECT A.v, B.v AS w FROM A [RANGE 9 HOURS], B [RANGE 9 HOURS] WHERE A.k = B.k")
    return engine


def table(rows: int, *, keys: int | None = None, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + rows)
    times = pa.array(numbers, pa.timestamp("us"))
    return pa.table({"k": numbers if keys is None else numbers % keys, "ts": times, "v": numbers})


def test_an_engine_in_memory_keeps_no_limit() -> None:
    with pytest.raises(InputError, match="cannot have a memory limit") as caught:
        ms.Engine(memory="4 GB")
    assert "checkpoint" in caught.value.remedy


def test_a_limit_below_what_the_process_holds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"below the .* of memory that this process already holds"):
        ms.Engine(checkpoint=tmp_path / "ckpt", memory="1 MB")
    assert not (tmp_path / "ckpt").exists()


@pytest.mark.parametrize("text", ["4 GX", "", "-1 GB", "0", "much"])
def test_what_is_no_amount_of_memory(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an amount of memory"):
        ms.Engine(checkpoint=tmp_path / "ckpt", memory=text)


def test_a_push_of_too_many_rows_changes_nothing(tmp_path: Path) -> None:
    with limited(tmp_path, 64 * MB) as engine:
        step = engine.manifest.step
        with pytest.raises(InputError, match="a push of 1,000,000 rows needs") as caught:
            engine.push({"A": table(1_000_000)})
        assert "fewer rows" in caught.value.remedy
        assert engine.manifest.step == step
        engine.push({"A": table(3)})
        assert engine.push({"B": table(3)})["q"].num_rows == 3


def test_a_join_of_too_many_results_changes_nothing(tmp_path: Path) -> None:
    with limited(tmp_path, 128 * MB) as engine:
        engine.push({"A": table(5_000, keys=1)})
        with pytest.raises(InputError, match=r"needs .* more memory"):
            engine.push({"B": table(5_000, keys=1)})
        assert engine.push({"B": table(2, keys=1)})["q"].num_rows == 10_000


def test_it_is_killed_under_a_limit_and_its_answers_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, a spread query and migrations, as in all kills; near the limit every chunk is mapped."""
    from tests.embedded.test_kills import check, run_and_kill

    monkeypatch.setenv("CRASH_LIMITED", "1")
    for step, point in enumerate(("after_chunks", "before_manifest", "after_manifest", "amid_tasks"), start=1):
        run_and_kill(tmp_path, f"{point}:{step}")
    main(tmp_path)
    check(tmp_path)
    assert CASE.queries


def test_job_files_and_the_command_line_name_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    text = """
checkpoint = "ckpt"
memory = "4 GB"
[streams.A]
format = "json"
path = "in"
schema = "k BIGINT, ts TIMESTAMP"
timestamp = "ts"
[queries.q]
sql = "SELECT A.k FROM A WINDOW 9 SECONDS"
sink = { format = "parquet", path = "out" }
"""
    job = tmp_path / "job.toml"
    job.write_text(text)
    assert read_job_file(job).memory == 4_000_000_000
    job.write_text(text.replace("4 GB", "4 GX"))
    with pytest.raises(ms.MidstreamError, match="not an amount of memory"):
        read_job_file(job)
    job.write_text(text.replace("4 GB", "1 MB"))
    started = ["run", str(job), "--engine", "embedded", "--once"]
    assert cli(started) == 2
    assert "already holds" in capsys.readouterr().err
    assert cli([*started, "--memory", "4 GX"]) == 2
    assert "is not an amount of memory (at --memory)" in capsys.readouterr().err
    assert cli([*started, "--memory", "64 GB"]) == 0


CHILD = """
import json, sys, threading, time
import numpy as np, pyarrow as pa
import midstream as ms
from tests.embedded.test_memory_limit import table

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024

most, ended = 0, False
def watch():
    global most
    while not ended:
        most = max(most, anonymous())
        time.sleep(0.002)
watcher = threading.Thread(target=watch)
watcher.start()
limit, rows, at_once = json.loads(sys.argv[2])
engine = ms.Engine(checkpoint=sys.argv[1], durable=False, **({"memory": limit} if limit else {}))
for name in "AB":
    engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
engine.add_query("q", "SELECT A.v, B.v AS w FROM A [RANGE 9 HOURS], B [RANGE 9 HOURS] WHERE A.k = B.k")
found = 0
for first in range(0, rows, at_once):
    rows_now = table(at_once, first=first)
    found += engine.push({"A": rows_now, "B": rows_now})["q"].num_rows
lanes = engine.manifest.lane_states.values()
bytes = sum(ref.bytes for lane in lanes for listing in lane.states.values() for ref in listing.chunks)
engine.close()
ended = True
watcher.join()
print(json.dumps([most, found, bytes]))
"""


@pytest.mark.verify
def test_a_process_stays_below_its_limit(tmp_path: Path) -> None:
    """The state is larger than the limit and what a process may hold beyond it."""
    limit, rows = 300 * MB, 6_000_000
    given = json.dumps([limit, rows, 60_000])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "ckpt"), given],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    most, found, held = json.loads(done.stdout)
    assert found == rows
    assert held > limit + MORE
    assert most < limit + MORE
