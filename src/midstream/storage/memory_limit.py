"""A limit on the memory of this process: what it holds, what it may still take, and what a step is refused."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from midstream.model.errors import InputError
from midstream.model.words import parse_size, size_text

_STATM = "/proc/self/statm"


@dataclass(frozen=True)
class MemoryLimit:
    """The most bytes that a process may hold in memory; pages of mapped files do not count.

    What counts is what the operating system cannot take back, also what other code of the process holds.
    """

    most: int

    @staticmethod
    def of(value: str | int | None, place: str) -> MemoryLimit | None:
        """Parse a limit for this process; None for none. Raises where it cannot be kept."""
        if value is None:
            return None
        limit = MemoryLimit(parse_size(value, place))
        if not os.path.exists(_STATM):
            raise InputError(
                "this system does not report the memory of a process", place=place, remedy="leave the limit out"
            )
        limit._relieve()
        if limit.held() > limit.most:
            raise InputError(
                f"the limit of {size_text(limit.most)} is below the {size_text(limit.held())} of memory that this "
                "process already holds",
                place=place,
                remedy="set a higher limit",
            )
        return limit

    def held(self) -> int:
        """Return the bytes that the process holds, without those of mapped files."""
        with open(_STATM, "rb") as file:
            _, resident, shared, *_ = file.read().split()
        return (int(resident) - int(shared)) * _PAGE

    @property
    def is_near(self) -> bool:
        """Whether the process holds more than half of the limit, so that a step needs the rest."""
        return 2 * self.held() > self.most

    def claim(self, more: int, what: str) -> None:
        """Ask for so many bytes for a step; raises `InputError` where they would exceed the limit."""
        if self.held() + more > self.most and self._relieve() + more > self.most:
            raise InputError(
                f"{what} needs {size_text(more)} more memory; the process holds {size_text(self.held())}, "
                f"and the limit is {size_text(self.most)}",
                place="memory",
                remedy="give the step fewer rows, or set a higher limit",
            )

    def _relieve(self) -> int:
        # Allocators keep what was freed; it counts until the system has it back.
        pa.default_memory_pool().release_unused()
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
        return self.held()


_PAGE = os.sysconf("SC_PAGESIZE")
