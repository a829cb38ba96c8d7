"""A sink of files: a folder a step, each put in place atomically and only once.

Tasks write into `_staging`, which readers of the folder pass over, under names that say whose step it is. When the step
is committed, the files that its manifest lists are gathered, and the gathering is renamed to `step=N`; where they are
alone in their folder, and no task may write another, that folder is. If this is interrupted, doing it again ends it.

On an object store, where nothing is renamed, the store copies each file to its name in `step=N`: a reader sees whole
files, but may see the first of a step before the last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from midstream.model.errors import SinkError
from midstream.model.time_line import Stamp
from midstream.model.words import suggest
from midstream.sinks.contract import STAGING, Sink, StagedStep, Staging, anything, staged_in, step_of
from midstream.sinks.formats import FORMATS
from midstream.sinks.merged import MergedResults
from midstream.storage.places import located, storage_at
from midstream.storage.storage_contract import Storage

ATTEMPTS = 10
"""How often a step is put in place where others change its folder at the same time."""

_STEP = re.compile(r"step=(\d+)")
_FILE = re.compile(r"(.*)~(.*)~.+")


@dataclass(frozen=True)
class FileSink(Sink):
    """Files in folders `step=N`: Parquet, JSON lines or CSV. The folders are below a path that every machine can reach,
    or below a URL of an object store.
    """

    path: str
    format: str = "parquet"

    name: ClassVar[str] = "files"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Make the sink from its options `path` and `format`.

        Raises `SinkError` if `FORMATS` lacks the format, or if midstream cannot keep files at `path`.
        """
        unknown = sorted(set(options) - {"path", "format"})
        if unknown or "path" not in options:
            wrong = f"unknown sink option {unknown[0]!r}" if unknown else "a sink of files needs a path"
            raise SinkError(wrong, place="sink", remedy="use only the options path and format")
        format = options.get("format", "parquet")
        if not isinstance(format, str) or format not in FORMATS:
            raise SinkError(f"unknown format {format!r}", place="sink", remedy=suggest(str(format), FORMATS))
        path = options["path"]
        if not isinstance(path, str | os.PathLike):
            raise SinkError(
                f"the path {path!r} is not a string", place="sink", remedy="name a folder, or a URL of a store"
            )
        return cls(located(path), format)

    def to_json(self) -> dict[str, Any]:
        """Return the path and the format, but no `type`: a sink without a type is a sink of files."""
        return {"format": self.format, "path": self.path}

    @property
    def target(self) -> str:
        """The folder."""
        return self.path

    def open(self) -> None:
        """Check, before the first step, that midstream can write to the folder."""
        self._storage().prepare()

    def staging(self, scratch: Storage) -> Staging:
        """Return a staging folder inside the sink's folder, so that a commit only renames files."""
        return Staging(self._storage(scratch.durable).at(STAGING), self.format)

    def commit(self, staged: StagedStep) -> None:
        """Put the step's files in place, or raise `SinkError` if they are neither staged nor in place."""
        self.write(staged)

    def write(self, staged: StagedStep) -> None:
        """Move the files of the successful attempts into the step's folder.

        If the job gave up a step with the same number, these files replace the files of that step. Raises `SinkError`
        if the folder has a step of another time line.
        """
        storage = self._storage(staged.staging.storage.durable)
        final = _folder(staged.step)
        if not storage.renames_folders:
            self._copy(storage, staged)
            return
        for _ in range(ATTEMPTS):
            if self._has(storage, staged):
                return
            if storage.move_folder(self._whole(storage, staged), final):
                return
            storage.tidy(final)  # What somebody began to write there and did not end is in the way.
        if not self._has(storage, staged):
            raise _in_the_way(storage, staged.step)

    def has(self, step: int) -> bool:
        """Check whether the folder has results of a step."""
        return self._stamp(self._storage(), step) is not None

    def has_all(self, stamp: Stamp, staged: Iterable[str]) -> bool:
        """Check whether all files that a step has staged are in place."""
        there = set(self._storage().names(_folder(stamp.step)))
        return set(staged) <= there

    def files(
        self, steps: range, which: Callable[[Stamp], bool], *, one_by_one: bool = False
    ) -> Iterator[tuple[int, str]]:
        """Yield the step and the name of each file of `steps`, in order of the steps.

        A file counts only if `which` accepts its stamp. With `one_by_one` the method lists each step's folder
        separately; otherwise it lists the whole sink at once.
        """
        storage = self._storage()
        if one_by_one or storage.renames_folders:
            folders = map(_folder, steps) if one_by_one else filter(_STEP.fullmatch, storage.names())
            names = [f"{folder}/{name}" for folder in folders for name in storage.names(folder)]
        else:
            names = [name for name, _ in storage.walk()]
        for name in sorted(names):
            folder, _, file = name.partition("/")
            found = _STEP.fullmatch(folder)
            step = int(found[1]) if found and _is_of_sink(file) else -1
            if step in steps and which(_stamp_of(file, step)):
                yield step, name

    @staticmethod
    def stamp_of(name: str) -> Stamp:
        """Read the stamp of a file from its name below the sink's root.

        The stamp's job is "" if no job wrote the file.
        """
        folder, _, file = name.rpartition("/")
        return _stamp_of(file, step_of(folder))

    def newest(self, name: str) -> Stamp | None:
        """Return the stamp of the newest step whose folder has a file."""
        storage = self._storage()
        steps = [int(match[1]) for folder in storage.names() if (match := _STEP.fullmatch(folder))]
        stamps = (self._stamp(storage, step) for step in sorted(steps, reverse=True))
        return next((stamp for stamp in stamps if stamp is not None), None)

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Remove the merged rows of all steps after `step`, then the files of these steps."""
        MergedResults.of(self.path).forget_after(step, given_up)
        storage = self._storage()
        steps = [int(match[1]) for folder in storage.names() if (match := _STEP.fullmatch(folder))]
        later = [one for one in steps if one > step]
        files = [f"{_folder(one)}/{file}" for one in later for file in self._files(storage, one, given_up)]
        # A name has the stamp of its time line, so no other time line writes a file of that name meanwhile.
        storage.remove(files)

    def _storage(self, durable: bool = True) -> Storage:
        return storage_at(self.path, durable=durable)

    def _copy(self, storage: Storage, staged: StagedStep) -> None:
        # Files leave the staging only once all have been copied: if they have left it, all are in place, or they are
        # lost.
        final, line = _folder(staged.step), staged.line
        found = {name: _stamp_of(name, staged.step) for name in _files_in(storage, final)}
        if any(stamp != staged.stamp and not line.gave_up(stamp) for stamp in found.values()):
            raise _of_another_time_line(storage, staged.step)
        storage.remove(f"{final}/{name}" for name, stamp in found.items() if stamp != staged.stamp)
        staging = f"{STAGING}/{staged_in(staged.stamp)}"
        copies = {f"{staging}/{file}": f"{final}/{file}" for file in staged.files}
        there = {f"{final}/{name}" for name in found}
        try:
            storage.copy_all({source: target for source, target in copies.items() if target not in there})
        except FileNotFoundError as error:
            if not self.has_all(staged.stamp, staged.files):
                raise _gone(storage, staged.step, staging) from error

    def _has(self, storage: Storage, staged: StagedStep) -> bool:
        stamp = self._stamp(storage, staged.step)
        if stamp is None:
            return False
        if stamp == staged.stamp:
            return True
        if not staged.line.gave_up(stamp):
            raise _of_another_time_line(storage, staged.step)
        others = self._files(storage, staged.step, staged.line.gave_up)
        storage.remove(f"{_folder(staged.step)}/{file}" for file in others)
        return False

    @staticmethod
    def _files(storage: Storage, step: int, which: Callable[[Stamp], bool]) -> list[str]:
        return [name for name in _files_in(storage, _folder(step)) if which(_stamp_of(name, step))]

    @staticmethod
    def _stamp(storage: Storage, step: int) -> Stamp | None:
        return next((_stamp_of(name, step) for name in _files_in(storage, _folder(step))), None)

    def _whole(self, storage: Storage, staged: StagedStep) -> str:
        folder = f"{STAGING}/{staged_in(staged.stamp)}"
        # The folder must have all files of the step and nothing else.
        if staged.tasks_ended:
            found = {name for name, _ in storage.walk(folder)}  # Also what writes that were broken off have left.
            if found == {f"{folder}/{file}" for file in staged.files}:
                return folder
        ready = f"{folder}.ready"
        for file in staged.files:
            self._gather(storage, staged, f"{folder}/{file}", f"{ready}/{file}")
        storage.settle(ready)
        return ready

    @staticmethod
    def _gather(storage: Storage, staged: StagedStep, source: str, target: str) -> None:
        try:
            storage.move(source, target)
        except FileNotFoundError:
            if not storage.exists(target) and not _files_in(storage, _folder(staged.step)):
                raise _gone(storage, staged.step, source) from None


def check_apart(folders: Iterable[tuple[str, str]]) -> None:
    """Raise where two outputs go to one folder or topic: of a step only one of them would be put in place.

    Args:
        folders: Of each output the place that messages name, and its folder or topic.
    """
    found = dict[str, str]()
    for place, path in folders:
        folder = path if "://" in path else os.path.realpath(path)
        other = found.setdefault(folder, place)
        if other != place:
            what = "topic" if path.startswith("kafka:") else "folder"
            raise SinkError(
                f"the {what} {path} already gets the results of {other}",
                place=place,
                remedy=f"give each query a {what} of its own",
            )


def _gone(storage: Storage, step: int, staged: str) -> SinkError:
    return SinkError(
        f"the results of step {step} are missing",
        place=storage.place(staged),
        remedy="go back to a step before the missing one, so that the job repeats the missing step: "
        "midstream rewind CHECKPOINT STEP",
    )


def _in_the_way(storage: Storage, step: int) -> SinkError:
    return SinkError(
        f"the results of step {step} cannot be put in place: another file has their name",
        place=storage.place(_folder(step)),
        remedy="find out which program wrote the other file, and move the file away",
    )


def _of_another_time_line(storage: Storage, step: int) -> SinkError:
    return SinkError(
        f"the folder already has step {step} from another time line than this job's",
        place=storage.place(_folder(step)),
        remedy="move the folder away, or give the query a sink of its own",
    )


def _folder(step: int) -> str:
    return f"step={step:08d}"


def _files_in(storage: Storage, folder: str) -> list[str]:
    return [name for name in storage.names(folder) if _is_of_sink(name)]


def _is_of_sink(name: str) -> bool:
    # File systems, programs and editors leave other files there, which readers of such folders pass over too; names of
    # results do not begin or end so.
    return not name.startswith((".", "_")) and not name.endswith("~") and "/" not in name


def _stamp_of(name: str, step: int) -> Stamp:
    found = _FILE.fullmatch(name)
    return Stamp(found[1], found[2], step) if found else Stamp("", "", step)
