"""Which process writes a checkpoint, and whether it is known to be dead; no clock is asked."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    """A process of a machine: `boot` names the machine's run since it was started and the container the process is in,
    `started` tells processes of one number apart. Empty where the operating system does not say.
    """

    host: str
    process: int
    boot: str = ""
    started: str = ""

    @staticmethod
    def here() -> Holder:
        """Identify this process."""
        return Holder(platform.node(), os.getpid(), _boot(), _started(os.getpid()))

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended: it was of this machine and container, where it is no more."""
        return self.is_of_this_machine and _started(self.process) != self.started

    @property
    def is_of_this_machine(self) -> bool:
        """Whether the process is one of this machine and container, so that it can be seen whether it is there."""
        return bool(self.boot) and self.boot == _boot()

    @property
    def is_here(self) -> bool:
        """Whether it is this very process."""
        return self == Holder.here()

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def _boot() -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _started(process: int) -> str:
    # In ticks since the machine was started; empty for a process that has ended.
    with suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""
