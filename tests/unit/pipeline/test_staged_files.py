"""Files that a task writes for outputs: when they survive the loss of power."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.pipeline.outputs import RESULTS, JobOutput
from midstream.pipeline.staged_files import StagedFiles
from midstream.sinks import Staging
from midstream.storage.local import LocalStorage
from midstream.storage.unsynced import Unsynced
from tests.unit.state.chunk_files import linux_only


@linux_only
def test_staged_files_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a task waits once: for its results and its chunks, before it reports them."""
    synced, output, unsynced = list[str](), JobOutput(RESULTS, "q"), Unsynced()
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    files = StagedFiles({output: Staging(LocalStorage(tmp_path / "s", durable=True))}, "token", unsynced)
    files.put(output, "rows", pa.table({"k": [1]}))
    (written,) = files.finish()
    assert not synced
    unsynced.sync()
    assert synced[:1] == [f"{tmp_path}/s/{written.file}"] and {str(tmp_path), f"{tmp_path}/s"} <= set(synced)
