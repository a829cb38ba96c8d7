"""The manifests of a job: one file a step, published at once, the last few kept as savepoints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar
from zlib import crc32

import pyarrow as pa

from midstream.checkpoint.epochs import EpochClaim, Epochs
from midstream.checkpoint.manifest_file import ManifestReading, ManifestWriting
from midstream.checkpoint.savepoints import Savepoints
from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.manifest import Manifest
from midstream.model.time_line import Epoch, TimeLine
from midstream.storage.disk import check_format
from midstream.storage.places import Place, storage_at

_NAME = re.compile(r"(?:(\d+)-)?(-?\d+)(?:~(\d+))?\+?\.json")
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def _settled(look: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    # The writer may take a file away after it was listed and before it is read: look again.
    @wraps(look)
    def settled(*given: _Given.args, **named: _Given.kwargs) -> _Found:
        for _ in range(100):
            with suppress(FileNotFoundError):
                return look(*given, **named)
        return look(*given, **named)

    return settled


class _Entry(NamedTuple):
    """A manifest's file: the number of the epoch it was published in (0 for a saved engine), its step, and how often
    the step had been published in that epoch before.
    """

    epoch: int
    step: int
    time: int
    name: str

    @staticmethod
    def of(name: str) -> _Entry | None:
        found = _NAME.fullmatch(name)
        return _Entry(int(found[1] or 0), int(found[2]), int(found[3] or 0), name) if found else None

    @staticmethod
    def to_publish(manifest: Manifest, before: Iterable[_Entry]) -> _Entry:
        if not manifest.epochs:
            return _Entry(0, manifest.step, 0, f"{manifest.step:012d}.json")
        epoch, step = manifest.epochs[-1].number, manifest.step
        # Another name than that of each file tried before for this step: a request for one of those may arrive late.
        time = 1 + max((one.time for one in before if (one.epoch, one.step) == (epoch, step)), default=-1)
        return _Entry(epoch, step, time, f"{epoch:06d}-{step:012d}{f'~{time:04d}' if time else ''}.json")


@dataclass(frozen=True)
class Rewinding:
    """A log that is about to go back to the `target`, which gives up the manifests `later` that are whole."""

    log: ManifestLog
    claim: EpochClaim
    target: Manifest
    later: tuple[Manifest, ...]

    def publish(self) -> Manifest:
        """Make the target the newest manifest, in the epoch of the claim, and return it."""
        step, kept = self.target.step, self.log.steps()
        # Without a whole manifest it is not known which files count: then all of them are given up.
        newest = max(kept or self.log.listed_steps(), default=step)
        known = {epoch.number: epoch for one in (self.target, *self.later) for epoch in one.epochs}
        target = replace(self.target, epochs=tuple(known[number] for number in sorted(known)))
        abandoned = newest if newest > step else None
        oldest = min(kept, default=step)
        begun = target.in_epoch(Epoch(self.claim.number, self.claim.token, step + 1, abandoned, oldest))
        self.log.add(begun)
        self.log.epochs.check(self.claim.number)
        self.log.forget_older(begun)
        return begun


class ManifestLog:
    """Where steps commit: a step is done once its manifest is published, and not before.

    The newest `keep` manifests stay; each is a savepoint that the job can go back to. If a call is interrupted, the
    log is afterwards as it was before the call or as it is after it. Any number of readers; one writer, which is held
    to it by epochs: see `Writer`. Every manifest is a file of its own epoch and step, so no driver ever overwrites what
    another has published, and the newest is the last step of the last epoch. What is not on the newest one's time line
    does not count: manifests of steps that were given up, or published by a driver that had lost the checkpoint.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = ManifestLog(folder, keep=2)
    ...     for step in range(3):
    ...         log.publish(Manifest(step=step))
    ...     print(log.steps(), log.latest().step)
    (1, 2) 2
    """

    def __init__(self, root: Place, keep: int = 10) -> None:
        """Open the log in a folder, which is made when the first manifest is published."""
        if keep < 1:
            raise CheckpointError(f"cannot keep {keep} manifests", place=str(root), remedy="keep one or more")
        self.storage = storage_at(root, durable=False)
        self._keep = keep
        self._seen: dict[_Entry, Manifest] = {}
        self._own: list[_Entry] | None = None
        self._tried: tuple[_Entry, ...] = ()
        self._writing = ManifestWriting()
        self._reading = ManifestReading(self.storage)

    @property
    def epochs(self) -> Epochs:
        """All claims on the checkpoint."""
        return Epochs(self.storage)

    @property
    def root(self) -> Path:
        """The folder of the manifests, where they are in one."""
        return Path(self.storage.url)

    def publish(self, manifest: Manifest) -> None:
        """Make this the newest manifest, and `forget_older`: for a log that nobody else may have taken over.

        Publishing a step again in the same epoch replaces it. Raises `SinkError` where it cannot be written; then the
        log is as before.
        """
        self.add(manifest)
        self.forget_older(manifest)

    def add(self, manifest: Manifest) -> None:
        """Make this the newest manifest, and remove nothing."""
        entry = _Entry.to_publish(manifest, self._tried)
        name, data = self._writing.file(entry.name, manifest)
        entry = entry._replace(name=name)
        # A step that failed may be in place or arrive late, and the one before be published once more after it.
        self._tried = (*(one for one in self._tried if one.step >= entry.step - 1), entry)
        self._own = None if self._own is None else [*self._own, entry]
        self.storage.write(name, data)
        self._writing.stands()
        self._remember({**self._seen, entry: manifest})

    def forget_older(self, manifest: Manifest) -> None:
        """Remove the manifests that are older than the newest `keep` and those that do not count.

        Call it once the manifest that was added last is durable. What cannot be removed now is tried again with the
        next. Only the process that still has the log may call this: what it takes for the oldest, another driver may go
        back to.
        """
        entry = self._tried[-1]
        with suppress(MidstreamError, FileNotFoundError):
            everything = sorted({*self._found(), entry})
            kept = self._counting(everything, manifest.time_line)[-self._keep :]
            self._remember({one: self._seen[one] for one in kept if one in self._seen})
            needed = self._needed([*kept, entry])
            gone = [old for old in everything if old < entry and old.name not in needed]
            # A reader who misses the file that another differs from sees by this order whether it was there.
            self.storage.remove(old.name for old in reversed(gone))
            self._writing.forget_all_but(needed)
            self.storage.tidy()
            self._own = [one for one in everything if one not in gone]

    def _needed(self, kept: list[_Entry]) -> set[str]:
        # The files that this log has not written name their base files themselves.
        own = self._writing.needed({one.name for one in kept})
        return own | self._reading.needed(own - self._writing.bases.keys())

    def rewind(self, step: int, *, take_over: bool = False) -> Manifest:
        """Go back to a kept step. It becomes the newest, in an epoch of its own, and later ones no longer count.

        Raises `CheckpointError`, and changes nothing, where that step is not kept or its manifest is damaged, and
        `HeldCheckpointError` where a job writes the checkpoint, unless that is to be taken over.
        """
        with self.rewinding(step, take_over=take_over) as rewinding:
            return rewinding.publish()

    @contextmanager
    def rewinding(
        self, step: int, *, savepoint: Manifest | None = None, take_over: bool = False
    ) -> Iterator[Rewinding]:
        """Hold the checkpoint to go back. Until the end of the context no job starts, and none does a step.

        So what is looked at before `Rewinding.publish` stays as it was seen, and the sinks follow after it. A
        `savepoint` has the manifest of a step that may no longer be kept.
        """
        if savepoint is None:
            self.read(step)
        claim = self.epochs.claim(take_over=take_over)
        try:
            yield Rewinding(self, claim, savepoint or self.read(step), self.readable_after(step))
        finally:
            self.epochs.release(claim)

    @_settled
    def check_format(self) -> None:
        """Raise `OtherFormatError` where the newest manifest is of a format that this midstream does not read."""
        for entry in self._everything()[-1:]:
            check_format(self.storage.read(entry.name).to_pybytes(), self.storage.place(entry.name))

    @_settled
    def latest(self) -> Manifest | None:
        """Read the newest manifest, or None for a job that has not done a step.

        Raises `CheckpointError` where it is damaged, naming the newest step that can be gone back to.
        """
        everything = self._everything()
        return self._read_whole(everything[-1], everything) if everything else None

    @_settled
    def newest_name(self) -> str:
        """Return the name of the newest manifest's file, which differs after each step; costs a listing.

        An engine may be saved again after the same step, so its file's checksum is part of it.
        """
        everything = self._everything()
        if not everything:
            return ""
        newest = everything[-1]
        return newest.name if newest.epoch else f"{newest.name}:{crc32(self.storage.read(newest.name)):08x}"

    @_settled
    def read(self, step: int) -> Manifest:
        """Read the manifest of a kept step."""
        kept = self._kept()
        for entry in kept:
            if entry.step == step:
                return self._read_whole(entry, kept)
        steps = f"{kept[0].step} to {kept[-1].step}" if kept else "none"
        raise CheckpointError(f"step {step} is not kept", place=self.storage.url, remedy=f"choose a kept step: {steps}")

    @_settled
    def steps(self, line: TimeLine | None = None) -> tuple[int, ...]:
        """List the kept steps, in order; with the newest manifest's time line, that costs only a listing."""
        kept = self._kept() if line is None else self._counting(self._everything(), line)[-self._keep :]
        return tuple(entry.step for entry in kept)

    @_settled
    def listed_steps(self) -> tuple[int, ...]:
        """List the steps of all files, of any epoch, also of damaged files."""
        return tuple(entry.step for entry in self._everything())

    @_settled
    def last_epoch(self) -> int:
        """Return the newest epoch of any file, also of a damaged one; 0 without a file."""
        return max((entry.epoch for entry in self._everything()), default=0)

    @_settled
    def newest_whole(self) -> Manifest | None:
        """Read the newest manifest that is not damaged, or None."""
        return next(self._readable(reversed(self._everything())), None)

    @_settled
    def kept(self) -> tuple[Manifest, ...]:
        """Read all kept manifests, in order of step, for the sweep; those this object has read or published cost
        little.

        Raises `CheckpointError` where one of them is damaged; then nothing may be swept, because it may list anything.
        """
        kept = self._kept()
        if not kept:
            self.latest()  # Where none can be read, it is not known which count.
        seen = {entry: self._seen.get(entry) or self._read_whole(entry, kept) for entry in kept}
        self._remember(seen)
        return tuple(seen.values())

    @_settled
    def readable_after(self, step: int) -> tuple[Manifest, ...]:
        """Read the kept manifests of later steps, except damaged ones; raises where one cannot be reached."""
        return tuple(self._readable(one for one in self._kept() if one.step > step))

    def _readable(self, entries: Iterable[_Entry]) -> Iterator[Manifest]:
        for entry in entries:
            data = self.storage.read(entry.name)
            with suppress(MidstreamError):
                yield self._made(data, entry)

    def _read_whole(self, entry: _Entry, others: list[_Entry]) -> Manifest:
        try:
            return self._parse(entry)
        except CheckpointError as error:
            if error.remedy:
                raise
            remedy = self._way_out([other for other in others if other < entry])
            raise CheckpointError(error.message, place=error.place, remedy=remedy) from error

    def _remember(self, seen: Mapping[_Entry, Manifest]) -> None:
        # An engine that is saved again may write a file of the same name.
        self._seen = {entry: manifest for entry, manifest in seen.items() if entry.epoch}

    def _found(self) -> list[_Entry]:
        # The writer lists the folder only once. What others have published since is of an older epoch, which the next
        # writer removes, or of a newer one, and then this process has lost the log.
        if self._own is not None:
            found, self._own = self._own, None
            return found
        return self._everything()

    def _everything(self) -> list[_Entry]:
        return sorted(entry for name in self.storage.names() if (entry := _Entry.of(name)))

    def _kept(self) -> list[_Entry]:
        # Oldest first.
        everything = self._everything()
        line = TimeLine("")
        for entry in reversed(everything):
            known = self._seen.get(entry) or next(self._readable([entry]), None)
            if known is not None:
                line = known.time_line
                break
        return self._counting(everything, line)[-self._keep :]

    @classmethod
    def _counting(cls, everything: list[_Entry], line: TimeLine) -> list[_Entry]:
        # Of each step the file of the newest epoch counts, if that epoch had a right to the step.
        begun = {epoch.number: epoch.since - 1 for epoch in line.epochs}
        kept: list[_Entry] = []
        for entry in reversed(everything):
            epoch = line.epoch_of(entry.step)
            owned = entry.epoch == (epoch.number if epoch else 0) or begun.get(entry.epoch) == entry.step
            if owned and (not kept or entry.step < kept[-1].step) and not cls._is_past(entry, line):
                kept.append(entry)
        return kept[::-1]

    @staticmethod
    def _is_past(entry: _Entry, line: TimeLine) -> bool:
        # A file that had been removed when the job went back is there again only if a request came late.
        return any(
            one.oldest is not None and entry.epoch < one.number and entry.step < one.oldest for one in line.epochs
        )

    def _parse(self, entry: _Entry) -> Manifest:
        return self._made(self.storage.read(entry.name), entry)

    def _made(self, data: pa.Buffer, entry: _Entry) -> Manifest:
        return self._reading.manifest(data.to_pybytes(), entry.name)

    def _way_out(self, older: list[_Entry]) -> str:
        checkpoint = self.storage.url.rpartition("/")[0] or self.storage.url
        for entry in reversed(older):
            try:
                self._parse(entry)
            except (MidstreamError, FileNotFoundError):
                continue
            return f"restore the file, or go back to step {entry.step} with: midstream rewind {checkpoint} {entry.step}"
        for name in Savepoints(storage_at(checkpoint)).names():
            return f"restore the file, or go back to a savepoint with: midstream rewind {checkpoint} {name}"
        return "restore the file, or begin with another checkpoint: no older step is whole"
