"""Lanes in worker processes: the answers are those of one thread, whatever is killed, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import midstream as ms
from midstream.cli.main import main as cli
from midstream.embedded import processes
from midstream.embedded.processes import InProcesses
from midstream.embedded.worker import KILL_AT
from midstream.model.errors import InputError, QueryError, WriteError
from midstream.pipeline.crash_points import POINTS
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from midstream.sinks.contract import STAGING
from tests.embedded import workers_engine
from tests.embedded.test_kills import check, newest, run_and_kill
from tests.forked import PATHS
from tests.user_predicates import failing, odd

PAIRS = "SELECT A.k, A.v AS a, B.v AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k"
CROSS = "SELECT A.v AS a, B.v AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.v < B.v"
ROWS = 40
AWAY = ("before_job", "amid_pieces", "after_chunks")
"""Points at which `make verify` kills workers; `make test` does at one more."""


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the workers also what has few rows."""
    monkeypatch.setattr(processes, "LEAST_ROWS", 0)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of every level whether workers did it."""
    noted: list[bool] = []
    run_lanes = InProcesses.run_lanes

    def noting(self: InProcesses, *given: object) -> object:
        found = run_lanes(self, *given)  # type: ignore[arg-type]
        noted.append(found is not None)
        return found

    monkeypatch.setattr(InProcesses, "run_lanes", noting)
    return noted


JOB = """
checkpoint = "ckpt"
workers = 2
[streams.A]
format = "parquet"
path = "in/A"
schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
timestamp = "ts"
[streams.B]
format = "parquet"
path = "in/B"
schema = "k BIGINT, v BIGINT, ts TIMESTAMP"
timestamp = "ts"
[queries.pairs]
sql = "SQL"
sink = { format = "parquet", path = "out" }
"""


def rows(step: int) -> dict[str, pa.Table]:
    times = pa.array([step * 1_000_000 + at for at in range(ROWS)], pa.timestamp("us"))
    keys = [at % 7 for at in range(ROWS)]
    return {name: pa.table({"k": keys, "v": [step * ROWS + at for at in range(ROWS)], "ts": times}) for name in "AB"}


def opened(root: Path, sql: str = PAIRS, *, workers: int | None = 2, lanes: int | None = None) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "checkpoint", workers=workers, lanes=lanes, threads=1)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("pairs", sql)
    return engine


def alone(steps: int) -> list[list[str]]:
    engine = ms.Engine(threads=1)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("pairs", PAIRS)
    return [answer(engine, step) for step in range(steps)]


def answer(engine: ms.Engine, step: int) -> list[str]:
    return sorted(map(str, engine.push(rows(step))["pairs"].to_pylist()))


def pids(engine: ms.Engine) -> list[int]:
    assert engine._processes is not None
    return [one.process.pid for one in engine._processes._processes.values()]


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(some: list[int]) -> bool:
    # They end by themselves, in a moment.
    for _ in range(1200):
        if not any(map(is_there, some)):
            return True
        time.sleep(0.05)
    return False


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_sinks_have_the_oracle_s_answers(tmp_path: Path, handed: list[bool]) -> None:
    """Amid a migration, a rescale and changes of a spread."""
    workers_engine.main(tmp_path)
    check(tmp_path)
    assert handed.count(True) >= 3


@pytest.mark.verify
def test_a_push_returns_what_serial_and_threads_return(tmp_path: Path, handed: list[bool]) -> None:
    """Also with pieces of answers that are not returned, and where one executor follows another on a checkpoint."""
    expected = alone(6)
    found = []
    for step, workers in enumerate((2, None, 3, None, 2, 2)):
        with opened(tmp_path, workers=workers, lanes=3) as engine:
            found.append(answer(engine, step))
    assert found == expected and any(expected)
    assert handed == [True] * 4


def test_answers_in_pieces_go_to_the_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_writer, "SIZES", PieceSizes(evaluated=7))
    with opened(tmp_path) as engine:
        for step in range(3):
            assert not engine.push(rows(step), returns=False)
        sink = tmp_path / "checkpoint" / "results" / "pairs"
        for step, expected in enumerate(alone(3)):
            files = list((sink / f"step={step:08d}").glob("*.parquet"))
            table = pa.concat_tables([pa.parquet.read_table(file, partitioning=None) for file in files])
            assert len(files) > 3 and sorted(map(str, table.to_pylist())) == expected


@pytest.mark.parametrize("point", ["amid_tasks", *[pytest.param(one, marks=pytest.mark.verify) for one in AWAY]])
def test_a_worker_that_is_killed_does_its_part_again(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both workers die in step 1; the step is done once, and what they had staged is cleared away."""
    monkeypatch.setattr(piece_writer, "SIZES", PieceSizes(evaluated=7))
    monkeypatch.setenv(KILL_AT, f"{point}:1")
    with opened(tmp_path) as engine:
        engine.push(rows(0), returns=False)
        before = pids(engine)
        engine.push(rows(1), returns=False)
        assert engine._processes is not None and engine._processes.deaths == 2
        assert not set(before) & set(pids(engine)) and gone(before)
        engine.push(rows(2), returns=False)
    sink = tmp_path / "checkpoint" / "results" / "pairs"
    found = []
    for step in range(3):
        folder = pa.dataset.dataset([str(file) for file in (sink / f"step={step:08d}").glob("*.parquet")])
        found.append(sorted(map(str, folder.to_table().to_pylist())))
    assert found == alone(3)
    assert not list((tmp_path / "checkpoint").glob(f"**/{STAGING}/**/*.parquet"))


@pytest.mark.verify
def test_workers_that_are_killed_between_steps_are_replaced(tmp_path: Path) -> None:
    found = []
    with opened(tmp_path) as engine:
        for step in range(4):
            found.append(answer(engine, step))
            if step % 2:
                os.kill(pids(engine)[0], signal.SIGKILL)
    assert found == alone(4)


def test_a_worker_that_dies_again_and_again_fails_the_step_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(3)
    with opened(tmp_path) as engine:
        assert answer(engine, 0) == expected[0]
        before, open_before = pids(engine), descriptors()
        monkeypatch.setattr(processes.subprocess, "Popen", _that_dies)
        for one in before:
            os.kill(one, signal.SIGKILL)
        with pytest.raises(WriteError, match="3 worker processes in a row") as caught:
            engine.push(rows(1))
        assert caught.value.place.startswith("step 1") and engine.manifest.step == 0
        assert gone(before) and not pids(engine) and descriptors() <= open_before
        monkeypatch.undo()
        monkeypatch.setattr(processes, "LEAST_ROWS", 0)
        assert [answer(engine, step) for step in (1, 2)] == expected[1:]


_POPEN = subprocess.Popen


def _that_dies(_: object, **options: object) -> subprocess.Popen[bytes]:
    return _POPEN([sys.executable, "-c", "raise SystemExit(3)"], **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.verify
def test_the_engine_is_killed_at_every_point(tmp_path: Path) -> None:
    """One after the other on the same checkpoint; its workers end with it."""
    program, mark = "tests.embedded.workers_engine", str(tmp_path)
    published = POINTS.index("after_manifest")
    for at, point in enumerate(POINTS[: published + 1]):
        run_and_kill(tmp_path, f"{point}:1", program)
        assert newest(tmp_path).step == (1 if at == published else 0)
    workers_engine.main(tmp_path)
    check(tmp_path)
    assert gone(_with_in_command_or_environment(mark))


def _with_in_command_or_environment(mark: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in said and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


_FORKING = """
import os, sys, time
from pathlib import Path
from tests.embedded import test_workers, workers_engine
from midstream.embedded import processes
processes.LEAST_ROWS = 0
engine = test_workers.opened(Path(sys.argv[1]))
engine.push(test_workers.rows(0))
child = os.fork()
if not child:
    time.sleep(600)
print(child, *test_workers.pids(engine), flush=True)
time.sleep(600)
"""


@pytest.mark.verify
def test_workers_end_with_an_engine_that_is_killed_though_a_forked_process_lives(tmp_path: Path) -> None:
    engine = subprocess.Popen(
        [sys.executable, "-c", _FORKING, str(tmp_path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PATHS}
    )
    assert engine.stdout is not None
    child, *workers = map(int, engine.stdout.readline().split())
    try:
        assert len(workers) == 2 and all(map(is_there, workers))
        engine.kill()
        engine.wait()
        assert gone(workers) and is_there(child)
    finally:
        os.kill(child, signal.SIGKILL)
        engine.stdout.close()


def test_nothing_is_left_after_close(tmp_path: Path) -> None:
    before = descriptors()
    engine = opened(tmp_path)
    engine.push(rows(0))
    workers, open_then = pids(engine), descriptors()
    for step in range(1, 4):
        engine.push(rows(step))
    assert pids(engine) == workers and descriptors() <= open_then
    engine.close()
    assert not any(map(is_there, workers)) and descriptors() <= before + 1


@pytest.mark.verify
def test_an_engine_that_is_forgotten_leaves_no_process(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    engine.push(rows(0))
    workers = pids(engine)
    del engine
    _collect()
    assert not any(map(is_there, workers))


def _collect() -> None:
    import gc

    gc.collect()


def test_one_lane_and_few_rows_stay_in_the_engine_s_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed: list[bool]
) -> None:
    with opened(tmp_path / "one", CROSS) as engine:
        assert engine.push(rows(0))["pairs"].num_rows
        assert handed == [False] and not pids(engine)
    monkeypatch.setattr(processes, "LEAST_ROWS", 2 * ROWS + 1)
    with opened(tmp_path / "few") as engine:
        assert [answer(engine, step) for step in range(2)] == alone(2)
        assert handed == [False] * 3 and not pids(engine)


def test_a_predicate_runs_in_the_workers_and_its_error_comes_back(tmp_path: Path) -> None:
    ms.predicate("odd_here", odd, "BIGINT")
    with opened(tmp_path, f"{PAIRS} AND odd_here(A.v)") as engine:
        found = engine.push(rows(0))["pairs"].to_pylist()
        assert found and all(row["a"] % 2 for row in found)
        ms.predicate("odd_here", failing, "BIGINT")
        with pytest.raises(QueryError, match="no such row"):
            engine.push(rows(1))
        assert engine.manifest.step == 0 and len(pids(engine)) == 2
        ms.predicate("odd_here", odd, "BIGINT")
        assert engine.push(rows(1))["pairs"].num_rows


def test_a_predicate_that_no_other_process_can_load_is_refused(tmp_path: Path) -> None:
    numbers = count()
    ms.predicate("local_here", lambda a: pa.array([next(numbers) >= 0] * len(a)), "BIGINT")
    with opened(tmp_path, f"{PAIRS} AND local_here(A.v)") as engine:
        with pytest.raises(QueryError, match="cannot be sent") as caught:
            engine.push(rows(0))
        assert "module" in caught.value.remedy and not pids(engine)


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "two"])
def test_a_number_of_workers_that_is_not_possible_is_refused(workers: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an engine cannot have"):
        ms.Engine(checkpoint=tmp_path, workers=workers)
    assert not list(tmp_path.iterdir())


def test_workers_need_a_checkpoint_linux_and_no_limit_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="in memory"):
        ms.Engine(workers=2)
    with pytest.raises(InputError, match="memory limit"):
        ms.Engine(checkpoint=tmp_path, workers=2, memory="8 GB")
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(InputError, match="memfd"):
        ms.Engine(checkpoint=tmp_path, workers=2)
    assert not list(tmp_path.iterdir())


def test_lanes_are_as_many_as_workers_unless_they_are_given(tmp_path: Path) -> None:
    given: list[tuple[int | str | None, int | None, int]] = [(3, None, 3), (2, 5, 5), (None, None, 1)]
    for number, (workers, lanes, expected) in enumerate([*given, ("auto", None, os.cpu_count() or 1)]):
        with ms.Engine(checkpoint=tmp_path / str(number), workers=workers, lanes=lanes) as engine:
            assert engine.manifest.lanes == expected
    assert ms.Engine(workers="auto").manifest.lanes == 1


def test_a_job_file_names_workers(tmp_path: Path, handed: list[bool], capsys: pytest.CaptureFixture[str]) -> None:
    for name, table in rows(0).items():
        (tmp_path / "in" / name).mkdir(parents=True)
        pyarrow.parquet.write_table(table, tmp_path / "in" / name / "0.parquet")
    text = JOB.replace("SQL", PAIRS)
    job, run = tmp_path / "job.toml", ["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--once"]
    job.write_text(text.replace("workers = 2", 'workers = 2\nmemory = "4 GB"'))
    assert cli(run) == 2
    assert "both worker processes and a memory limit" in capsys.readouterr().err
    job.write_text(text.replace("workers = 2", 'workers = "all"'))
    assert cli(run) == 2
    assert f"{job}, line 3" in (said := capsys.readouterr().err) and "workers is 'all'" in said
    job.write_text(text)
    assert cli(run) == 0 and handed == [True]
    assert ms.open(tmp_path / "ckpt").report().lanes == 2
    found = pyarrow.dataset.dataset(tmp_path / "out").to_table().select(["a", "b"])
    with opened(tmp_path, workers=None, lanes=1) as engine:
        assert sorted(map(str, found.to_pylist())) == sorted(
            map(str, engine.push(rows(0))["pairs"].select(["a", "b"]).to_pylist())
        )
