from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from midstream.storage.files import FileStore
from tests.unit.state.chunk_files import forget_everything


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    yield FileStore(tmp_path / "chunks")
    forget_everything()
