"""The checksum of files: CRC-32, by Intel's ISA-L where `midstream[fast]` is installed, to the same number.

Every chunk is checked when it is written and when it is read for the first time: of chunks of numbers that is most of
what there is to do besides the disk.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32 as _crc32
except ImportError:
    from zlib import crc32 as _crc32

from typing import Any


def crc32(data: Any, start: int = 0) -> int:
    """Compute the CRC-32 of bytes or a buffer; `start` is that of the bytes before.

    >>> crc32(b"midstream")
    3126050436
    """
    return int(_crc32(data, start))
