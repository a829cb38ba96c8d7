"""Who may write a checkpoint: the driver that claimed its newest epoch.

Whether the process that claimed it is dead is found out without a clock.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError, HeldCheckpointError, LostCheckpointError, MidstreamError
from midstream.storage.disk import seal, unseal
from midstream.storage.storage_contract import Storage


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


_EPOCH = re.compile(r"epoch-(\d+)\.claim")
_MANIFEST = re.compile(r"(\d+)-.+\.json")
_KEPT = 3

_HELD_HERE: set[str] = set()
"""Tokens of the claims that this process has and has not let go of, also where it could not write that it has."""

_REMEDY = "restore the file, or remove it if no driver runs"


@dataclass(frozen=True)
class EpochClaim:
    """An epoch and the process that claimed it; `released` once that has ended and let go.

    `claimed` and `ended` are when, by that process's clock, in seconds since 1970, and `failure` is why, if it failed:
    they are shown to people, and nothing is decided by them.
    """

    number: int
    token: str
    holder: Holder
    released: bool = False
    claimed: float | None = None
    ended: float | None = None
    failure: str = ""

    @property
    def is_free(self) -> bool:
        """Whether the one who has it is known to write no more."""
        return self.released or self.holder.is_gone or (self.holder.is_here and self.token not in _HELD_HERE)


class Epochs:
    """The claims of a checkpoint, numbered from 1 on, one file each.

    The newest claim is the one that counts: a process that finds one newer than its own has lost the checkpoint, and
    no clock, lease or heartbeat is needed for that. Claims are files that are created only where there is none, so of
    many drivers that claim an epoch at once one gets it.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def newest(self) -> EpochClaim | None:
        """Read the claim that counts; None if no job has begun on the checkpoint."""
        numbers = self._numbers()
        while numbers:
            name = _name(numbers[-1])
            try:
                value = unseal(self._storage.read(name).to_pybytes(), self._storage.place(name), _REMEDY)
            except FileNotFoundError:  # Newer claims have made it superfluous since the listing.
                numbers = self._numbers()
                continue
            try:
                return decode(EpochClaim, value)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                message = f"the file does not read as a claim: {error!r}"
                raise CheckpointError(message, place=self._storage.place(name), remedy=_REMEDY) from error
        return None

    def claim(self, *, take_over: bool = False) -> EpochClaim:
        """Claim the next epoch for this process.

        Raises `HeldCheckpointError` where the one who has the newest has not released it and is not known to be dead,
        unless `take_over` says so.
        """
        while True:
            newest = self.newest()
            if newest is not None and not (take_over or newest.is_free):
                raise _held(newest, self._storage.url)
            mine = EpochClaim(self._next(), secrets.token_hex(4), Holder.here(), claimed=time.time())
            if self._storage.create(_name(mine.number), seal(encode(mine))):
                _HELD_HERE.add(mine.token)
                with suppress(MidstreamError):  # Old claims are in nobody's way.
                    self._storage.remove(_name(number) for number in self._numbers()[:-_KEPT])
                return mine

    def is_newest(self, number: int) -> bool:
        """Return whether nobody has claimed a later epoch."""
        later = self._storage.names_after("", _name(number))
        return not any(_EPOCH.fullmatch(name) for name in later)

    def check(self, number: int) -> None:
        """Raise `LostCheckpointError` if somebody has claimed a later epoch."""
        if not self.is_newest(number):
            newest = self.newest()
            raise LostCheckpointError(
                f"{newest.holder if newest else 'another driver'} has taken the checkpoint over",
                place=self._storage.url,
                remedy="let that job run; this job has ended and changes nothing more",
            )

    def release(self, claim: EpochClaim, failure: str = "") -> None:
        """Record that the process has ended, so that the next writer can claim at once.

        Args:
            claim: The claim to release.
            failure: Why the job ended; empty if it ended in order.
        """
        _HELD_HERE.discard(claim.token)
        if self.is_newest(claim.number):
            ended = replace(claim, released=True, ended=time.time(), failure=failure)
            self._storage.write(_name(claim.number), seal(encode(ended)))

    def _next(self) -> int:
        # A manifest may be left of an epoch whose claim somebody has removed.
        manifests = [int(match[1]) for name in self._storage.names() if (match := _MANIFEST.fullmatch(name))]
        return max([0, *self._numbers(), *manifests]) + 1

    def _numbers(self) -> list[int]:
        return sorted(int(match[1]) for name in self._storage.names() if (match := _EPOCH.fullmatch(name)))


def _name(number: int) -> str:
    return f"epoch-{number:06d}.claim"


def _held(claim: EpochClaim, place: str) -> HeldCheckpointError:
    if claim.holder.is_here:
        return HeldCheckpointError(
            "this process already runs a job on the checkpoint", place=place, remedy="stop that run first"
        )
    known = "which runs" if claim.holder.started and claim.holder.boot == Holder.here().boot else "which may still run"
    return HeldCheckpointError(
        f"the checkpoint belongs to {claim.holder}, {known}",
        place=place,
        remedy="stop that job, or end it by taking over: `midstream run --take-over`, `job.start(take_over=True)`",
    )
