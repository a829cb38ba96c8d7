"""The process of an engine is killed between two pieces of an answer; the sink is as if it never was."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from midstream.pipeline.crash_points import AMID_PIECES
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from tests.embedded.pieces_engine import CASE, PART, main
from tests.forked import run
from tests.oracle.compare import assert_each_step_same

PROGRAM = "tests.embedded.pieces_engine"


FOLDERS = [f"step={number:08d}" for number in range(len(CASE.steps))]


def check(sink: Path) -> None:
    """Fail unless the sink has the oracle's answer of each step."""
    found = [pq.read_table(sink / one) if (sink / one).is_dir() else None for one in FOLDERS]
    (answer,) = CASE.expected().values()
    assert_each_step_same(found, answer, "chain")


@pytest.mark.timeout(300)
def test_it_is_killed_between_two_pieces(tmp_path: Path) -> None:
    for step in (1, 2, 4):
        done = run(PROGRAM, tmp_path, MIDSTREAM_KILL_AT=f"{AMID_PIECES}:{step}")
        assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    done = run(PROGRAM, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    sink = tmp_path / "answers" / "chain"
    check(sink)
    sizes = [[pq.read_metadata(file).num_rows for file in (sink / one).glob("*.parquet")] for one in FOLDERS]
    assert max(map(len, sizes)) > 3 and max(max(each, default=0) for each in sizes) <= PART
    assert not list(tmp_path.glob("answers/*/_staging/**/*.parquet")), "staging was left behind"


def test_an_undisturbed_run_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_writer, "SIZES", PieceSizes(evaluated=PART))
    main(tmp_path)
    check(tmp_path / "answers" / "chain")
