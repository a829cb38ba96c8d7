"""Checksums are the same whoever computes them."""

from __future__ import annotations

import importlib
import sys
import zlib

import numpy as np
import pyarrow as pa
import pytest

from midstream.storage import disk


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 255, 4_096, 1_000_003])
def test_as_zlib_does(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    for lent in (data, bytearray(data), memoryview(data), pa.py_buffer(data)):
        assert disk.crc32(lent) == zlib.crc32(data)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    try:
        assert importlib.reload(disk).crc32(b"midstream") == zlib.crc32(b"midstream")
    finally:
        monkeypatch.undo()
        importlib.reload(disk)
