"""Spark's own log, as each driver begins a copy of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midstream.job.spark_log import begin_log
from midstream.model.manifest import Manifest
from tests.unit.state.chunk_files import linux_only


@linux_only
def test_a_copy_of_spark_s_log_is_durable_before_it_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = tmp_path / "epoch=000001"
    for kind in ("offsets", "commits"):
        (former / kind).mkdir(parents=True)
        (former / kind / "0").write_text("{}")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    begin_log(str(tmp_path), 2, Manifest(step=0))
    copy = tmp_path / "epoch=000002.tmp"
    assert {str(copy / "offsets" / "0"), str(copy / "commits"), str(copy)} < set(synced)
    assert synced[-1] == str(tmp_path)
    synced.clear()
    begin_log(str(tmp_path), 3, Manifest(step=0), durable=False)
    assert synced == []
