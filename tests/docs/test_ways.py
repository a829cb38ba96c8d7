"""docs/ways.md names every file of the host rooms that a command and a batch pass, and no other."""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.model.events import MigrationEnded

PAGE = Path("docs/ways.md")
BATCH, SENT, TAKEN = "A batch from `push` to a sink", "A command until it is in the log", "The step that takes it"
SOURCE = f"{Path(ms.__file__).parent}/"
ROOMS = (
    "admission", "checkpoint", "cli", "commands", "embedded", "migration", "pipeline", "proposals", "review", "sinks",
    "spark", "step", "units",
)  # fmt: skip


def named(section: str) -> list[str]:
    """The files that a section of the page names, in its order."""
    _, _, rest = PAGE.read_text().partition(f"## {section}\n")
    return re.findall(r"^\| `([\w/]+\.py)` \|", rest.partition("\n## ")[0], re.MULTILINE)


def passed(act: Callable[[], object]) -> list[str]:
    """The files of the host rooms whose functions run while something is done, in order of their first call."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Bodies of modules and classes run with an import, and are not functions.
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(SOURCE):
            found.setdefault(code.co_filename.removeprefix(SOURCE))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return [file for file in found if file.partition("/")[0] in ROOMS]


def rows(*seconds: int) -> dict[str, pa.Table]:
    times = pa.array([1_000_000 * second for second in seconds], pa.timestamp("us"))
    return dict.fromkeys("ABC", pa.table({"k": list(seconds), "ts": times}))


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The files passed, by section. Done twice: what is found once in a process is not on the way."""
    recorded(tmp_path_factory.mktemp("first"))
    return recorded(tmp_path_factory.mktemp("second"))


def recorded(root: Path) -> dict[str, list[str]]:
    with ms.Engine(checkpoint=root, threads=1) as engine:
        for stream in "ABC":
            engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS")
        for second in range(3):
            engine.push(rows(second))
        batch = passed(lambda: engine.push(rows(4, 5), returns=False))
        sent = passed(lambda: main(["migrate", str(root), "q", "(A (B C))", "--strategy", "moving_state"]))
        taken = passed(lambda: engine.push(rows(6), returns=False))
        assert any(isinstance(event, MigrationEnded) for event in engine.events)
    return {BATCH: batch, SENT: sent, TAKEN: [one for one in taken if one not in batch]}


@pytest.mark.parametrize("section", [BATCH, SENT, TAKEN])
def test_the_page_names_every_file_on_the_way(ways: dict[str, list[str]], section: str) -> None:
    missing, gone = (
        [one for one in ways[section] if one not in named(section)],
        set(named(section)) - set(ways[section]),
    )
    assert not missing and not gone, f"{PAGE}, {section}: add {missing}, take out {sorted(gone)}"
