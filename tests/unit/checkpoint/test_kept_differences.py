"""Files of manifests with differences, as the first code that wrote them left them, are read for good.

`MIDSTREAM_KEEP=write pytest` of this file writes those of the present format, once; they are not to be written again.
"""

from __future__ import annotations

import json
import os
import random
import tarfile
from pathlib import Path

import pytest

from midstream.checkpoint import manifest_writing
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.model.codec import encode
from tests.unit.checkpoint.test_manifest_differences import begun, changed, is_difference, wide

KEPT = Path(__file__).with_name("differences_format_5.tar.xz")


def write(folder: Path) -> None:
    """Twenty steps of a job of six lanes, and beside them the manifests that are kept, whole."""
    draw = random.Random(7)
    writer, manifest = begun(folder / "manifests", wide(6))
    for step in range(20):
        writer.commit(manifest := changed(manifest, draw, step))
    writer.release()
    whole = {str(one.step): encode(one) for one in ManifestLog(folder / "manifests").kept()}
    (folder / "whole.json").write_text(json.dumps(whole))
    with tarfile.open(KEPT, "w:xz") as tar:
        for path in sorted(folder.rglob("*.json")):
            tar.add(path, str(path.relative_to(folder)))


def test_kept_files_are_read_as_what_they_were_written_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("MIDSTREAM_KEEP") == "write":
        monkeypatch.setattr(manifest_writing, "LEAST", 1)
        write(tmp_path / "made")
    with tarfile.open(KEPT) as tar:
        tar.extractall(tmp_path / "kept", filter="data")
    files = list((tmp_path / "kept" / "manifests").glob("*.json"))
    assert sum(map(is_difference, files)) > 10
    whole = json.loads((tmp_path / "kept" / "whole.json").read_text())
    kept = ManifestLog(tmp_path / "kept" / "manifests").kept()
    assert [str(one.step) for one in kept] == list(whole) and len(kept) == 10
    for one in kept:
        assert json.loads(json.dumps(encode(one))) == {**encode(one), **whole[str(one.step)]}
