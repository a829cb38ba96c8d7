from __future__ import annotations

from pathlib import Path

import pytest

from midstream.checkpoint.manifest_log import ManifestLog


@pytest.fixture
def log(tmp_path: Path) -> ManifestLog:
    return ManifestLog(tmp_path / "manifests", keep=4)
