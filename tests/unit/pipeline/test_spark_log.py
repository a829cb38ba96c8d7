"""Spark's own log, as each driver begins a copy of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.pipeline.spark_log import begin_log, fit_sources, has_committed, offsets_of
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


def test_files_that_others_put_into_a_log_are_passed_over(tmp_path: Path) -> None:
    former, names = tmp_path / "epoch=000001", (".nfs0001", ".DS_Store", "0 (copy)", "0~", "\u00b2")
    for kind in ("offsets", "commits", "sources/0"):
        (former / kind).mkdir(parents=True)
        for name in ("0", *names):
            (former / kind / name).write_text("v1\n{}\n-")
    shutil.copytree(former, tmp_path / "epoch=000001 (copy)")
    shutil.rmtree(tmp_path / "epoch=000001 (copy)" / "commits")
    begun = Path(begin_log(str(tmp_path), 2, Manifest(step=0)))
    assert offsets_of(str(tmp_path)) == {0} and has_committed(str(begun), 0)
    fit_sources(str(begun), 1)


def test_a_log_is_fitted_to_the_streams_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for batch, ends in enumerate((["{0}"], ["{1}"])):
        (tmp_path / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *ends]))
    for source in range(3):
        (tmp_path / "sources" / str(source)).mkdir(parents=True)
        (tmp_path / "sources" / str(source) / "0").write_text("v1")

    def ends() -> list[list[str]]:
        return [(tmp_path / "offsets" / str(batch)).read_text().split("\n")[2:] for batch in range(2)]

    fit_sources(str(tmp_path), 3)
    assert ends() == [["{0}", "-", "-"], ["{1}", "-", "-"]]
    assert [path.name for path in (tmp_path / "sources").iterdir()] == ["0"], (
        "a stream of before may have had the place"
    )
    fit_sources(str(tmp_path), 3)
    fit_sources(str(tmp_path), 1)
    assert ends() == [["{0}"], ["{1}"]]
    (tmp_path / "offsets" / "1").write_text("v1\n{}\n{1}\n{2}")
    fit_sources(str(tmp_path), 1)
    assert ends()[1] == ["{1}", "{2}"], "what has read something stays, and Spark refuses it"
    (tmp_path / "offsets" / "1").write_text("nonsense")
    with pytest.raises(CheckpointError, match="log of offsets cannot be read"):
        fit_sources(str(tmp_path), 1)
    fit_sources(str(tmp_path / "new"), 2)
