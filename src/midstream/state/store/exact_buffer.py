"""What is written in memory of its very size, which a stream that grows would have to find by copying."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from midstream.state.gather import POOL


def exact_buffer(write: Callable[[pa.NativeFile], None]) -> pa.Buffer:
    """Write into a buffer of exactly the needed size; calls `write` twice, the first time to measure.

    >>> exact_buffer(lambda sink: sink.write(b"abc")).to_pybytes()
    b'abc'
    """
    size = pa.MockOutputStream()
    write(size)
    data = pa.allocate_buffer(size.size(), memory_pool=POOL)
    write(pa.FixedSizeBufferWriter(data))
    return data
