"""The driver is killed as it commits a step; when the next one has committed it, its rows are there once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.sinks import Sink
from midstream.sinks.postgresql import PostgresqlSink
from tests.postgresql import Server
from tests.sinks.crash_step import POINTS, ROWS, the_step
from tests.sinks.lakes import LAKES, describe_catalog
from tests.sinks.steps import commit

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = [(kind, name) for kind in POINTS for name in ("before", *(p.__name__ for p in POINTS[kind]), "after")]

Killed = Callable[[Sink, Path, str], int]


@pytest.fixture(scope="module")
def killed(postgresql: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    """Has a driver die at a point; what it ended with."""
    with pytest.MonkeyPatch.context() as patched:
        describe_catalog(tmp_path_factory.mktemp("catalog"), patched)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        asked = [sys.executable, "-m", "tests.sinks.crash_step"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(asked, env=environment, **pipes) as drivers:  # type: ignore[call-overload]
            assert drivers.stdin is not None and drivers.stdout is not None

            def kill(sink: Sink, scratch: Path, point: str) -> int:
                drivers.stdin.write(json.dumps([sink.to_json(), str(scratch), point]) + "\n")
                drivers.stdin.flush()
                return int(drivers.stdout.readline())

            yield kill
            drivers.stdin.close()


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_the_driver_is_killed(kind: str, point: str, postgresql: Server, killed: Killed, tmp_path: Path) -> None:
    table = f"t_{point}"
    sink: Sink = PostgresqlSink(table, postgresql.dsn) if kind == "postgresql" else LAKES[kind].make(tmp_path)

    def keys() -> Counter[int]:
        if kind == "postgresql":
            return Counter(k for (k,) in postgresql.execute(f"SELECT k FROM {table}"))
        return Counter(row["k"] for row in LAKES[kind].rows(tmp_path))

    sink.open()
    commit(sink, tmp_path, 0, pa.table({"k": [-1], "s": ["x"]}))
    assert killed(sink, tmp_path, point) == -signal.SIGKILL
    every = Counter([-1, *ROWS["k"].to_pylist()])
    assert keys() == (every if point == "after" else Counter([-1]))
    again = the_step(sink, tmp_path)
    for _ in range(2):
        sink.commit(again)
    again.staging.clear()
    sink.commit(again)
    assert keys() == every
