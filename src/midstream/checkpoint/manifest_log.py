"""The manifests of a job: one file a step, published at once, the last few kept as savepoints."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from midstream.checkpoint.upgrade import upgraded
from midstream.model.codec import decode, encode
from midstream.model.errors import CheckpointError, MidstreamError, SinkError
from midstream.model.manifest import FORMAT_VERSION, READABLE, Manifest
from midstream.state.store.disk import (
    cannot_read,
    cannot_write,
    discard,
    names_in,
    other_version,
    seal,
    sync_folder,
    unseal,
    write_whole,
)

_STEP = re.compile(r"-?\d+\.json")
_TURN = "turn.json"
_TURN_REMEDY = "restore the file, or remove it: the job is then where it was before it went back"
_T = TypeVar("_T")
_Identity = tuple[int, int, int]


class ManifestLog:
    """Where steps commit: a step is done once its manifest is published, and not before.

    The newest `keep` manifests stay; each is a savepoint that `rewind` goes back to. Whatever interrupts a call, the
    log is afterwards as it was before the call or as it is after it. One writer at a time; any number of readers.

    To go back is atomic too, though many files go: the manifest gone back to is first written as `turn.json`. From then
    on it is the newest one and files of later steps do not count; at last it is renamed to its step's own name. The
    next call that writes ends what was left undone.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = ManifestLog(folder, keep=2)
    ...     for step in range(3):
    ...         log.publish(Manifest(step=step))
    ...     print(log.steps(), log.latest().step)
    (1, 2) 2
    """

    def __init__(self, root: str | os.PathLike[str], keep: int = 10, *, fsync: bool = False) -> None:
        """The log in the folder `root`, which is made when the first manifest is published."""
        if keep < 1:
            raise CheckpointError(f"cannot keep {keep} manifests", place=str(root), remedy="keep one or more")
        self._root = os.path.abspath(root)
        self._keep = keep
        self._fsync = fsync
        self._seen: dict[int, tuple[_Identity, Manifest]] = {}

    @property
    def root(self) -> Path:
        """The folder of the manifests."""
        return Path(self._root)

    def publish(self, manifest: Manifest) -> None:
        """Make this the newest manifest; manifests of later steps, left by going back, are abandoned.

        Publishing a step again replaces it. Manifests older than the newest `keep` are removed once the new one stands.
        Raises `SinkError` where it cannot be written; then the log is as before.
        """
        names = names_in(self._root)
        if _TURN in names:
            self._finish_turn()
            names = names_in(self._root)
        steps = {*_steps(names), manifest.step}
        if max(steps) > manifest.step:
            self._turn(manifest)
            steps = {step for step in steps if step <= manifest.step}
        else:
            write_whole(self._path(manifest.step), _document(manifest), fsync=self._fsync)
            self._seen[manifest.step] = _identity(self._path(manifest.step)), manifest
        # The step is done: what cannot be cleaned away now is tried again with the next.
        for step in sorted(steps)[: -self._keep]:
            discard(self._path(step))
            self._seen.pop(step, None)
        for name in names:
            if name.endswith(".tmp"):
                discard(f"{self._root}/{name}")

    def rewind(self, step: int) -> Manifest:
        """Go back to a kept step: it becomes the newest, later manifests are removed.

        Raises `CheckpointError`, and changes nothing, where that step is not kept or its manifest is damaged.
        """
        manifest = self.read(step)
        names = names_in(self._root)
        if _TURN in names or any(other > step for other in _steps(names)):
            self._turn(manifest)
        return manifest

    def latest(self) -> Manifest | None:
        """The newest manifest, or None for a job that has not done a step.

        Raises `CheckpointError` where it is damaged, naming the newest step that can be gone back to.
        """
        return self._settled(self._latest)

    def read(self, step: int) -> Manifest:
        """The manifest of a kept step."""
        return self._settled(lambda: self._read_kept(step))

    def steps(self) -> tuple[int, ...]:
        """The kept steps, in order."""
        return self._settled(self._kept_steps)

    def kept(self) -> tuple[Manifest, ...]:
        """All kept manifests, in order of step, for the sweep; those this object has read or published cost little.

        Raises `CheckpointError` where one of them is damaged; then nothing may be swept, for it may list anything.
        """
        return self._settled(self._all)

    def _latest(self) -> Manifest | None:
        steps = self._kept_steps()
        return self._read_whole(steps[-1], steps) if steps else None

    def _kept_steps(self) -> tuple[int, ...]:
        names = names_in(self._root)
        steps = _steps(names)
        if _TURN in names:
            turned = self._parse(self._turn_path, _TURN_REMEDY).step
            steps = {step for step in steps if step < turned} | {turned}
        return tuple(sorted(steps))

    def _read_kept(self, step: int) -> Manifest:
        steps = self._kept_steps()
        if step not in steps:
            kept = f"{steps[0]} to {steps[-1]}" if steps else "none"
            raise CheckpointError(f"step {step} is not kept", place=self._root, remedy=f"choose a kept step: {kept}")
        return self._read_whole(step, steps)

    def _read_whole(self, step: int, steps: tuple[int, ...]) -> Manifest:
        try:
            return self._parse(self._where(step))
        except CheckpointError as error:
            if error.remedy:
                raise
            remedy = self._way_out([older for older in steps if older < step])
            raise CheckpointError(error.message, place=error.place, remedy=remedy) from error

    def _all(self) -> tuple[Manifest, ...]:
        seen: dict[int, tuple[_Identity, Manifest]] = {}
        steps = self._kept_steps()
        for step in steps:
            identity = _identity(self._where(step))
            entry = self._seen.get(step)
            seen[step] = entry if entry and entry[0] == identity else (identity, self._read_whole(step, steps))
        self._seen = seen
        return tuple(manifest for _, manifest in seen.values())

    def _where(self, step: int) -> str:
        turn = self._turn_path
        turned = os.path.exists(turn) and self._parse(turn, _TURN_REMEDY).step == step
        return turn if turned else self._path(step)

    def _parse(self, path: str, remedy: str = "") -> Manifest:
        try:
            with open(path, "rb") as file:
                value = unseal(file.read(), path, remedy)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_read(error, path) from error
        try:
            if value["format"] not in READABLE:
                raise other_version(str(value["format"]), path)
            return decode(Manifest, upgraded(value))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the file does not read as a manifest: {error!r}"
            raise CheckpointError(message, place=path, remedy=remedy) from error

    def _way_out(self, older: list[int]) -> str:
        for step in reversed(older):
            try:
                self._parse(self._path(step))
            except (MidstreamError, FileNotFoundError):
                continue
            return f"restore the file, or go back to step {step} with ManifestLog({self._root!r}).rewind({step})"
        return "restore the file, or begin with another checkpoint: no older step is whole"

    def _turn(self, manifest: Manifest) -> None:
        write_whole(self._turn_path, _document(manifest), fsync=self._fsync)
        with suppress(SinkError):  # It counts from here on.
            self._finish_turn()

    def _finish_turn(self) -> None:
        turned = self._parse(self._turn_path, _TURN_REMEDY).step
        try:
            for step in _steps(names_in(self._root)):
                if step > turned:
                    os.unlink(self._path(step))
            if self._fsync:
                sync_folder(self._root)
            os.replace(self._turn_path, self._path(turned))
            if self._fsync:
                sync_folder(self._root)
        except OSError as error:
            raise cannot_write(error, self._root) from error

    @property
    def _turn_path(self) -> str:
        return f"{self._root}/{_TURN}"

    def _path(self, step: int) -> str:
        return f"{self._root}/{step:012d}.json"

    def _settled(self, look: Callable[[], _T]) -> _T:
        """Look again where the writer took a file away between its being listed and its being read."""
        for _ in range(100):
            try:
                return look()
            except FileNotFoundError:
                continue
        return look()


def _document(manifest: Manifest) -> bytes:
    # The version once more, where the checksum covers it.
    return seal({"format": FORMAT_VERSION, **encode(manifest)})


def _steps(names: list[str]) -> set[int]:
    return {int(name[:-5]) for name in names if _STEP.fullmatch(name)}


def _identity(path: str) -> _Identity:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino
