"""A sink of files: a folder a step, each put in place at once and only once.

Tasks write into `_staging/step=N`, which readers of the folder pass over. When the step is committed, the files that
its manifest lists are gathered, and the gathering is renamed to `step=N`. Whatever interrupts this, doing it again
ends it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from midstream.model.errors import SinkError
from midstream.spark.sinks.contract import STAGING, Sink, StagedStep, Staging
from midstream.spark.sinks.formats import FORMATS
from midstream.state.store.disk import cannot_write, names_in

_STEP = re.compile(r"step=(\d+)")


@dataclass(frozen=True)
class FileSink(Sink):
    """Files in folders `step=N` below a path that every machine of the cluster sees: Parquet, JSON lines or CSV."""

    path: str
    format: str = "parquet"

    name: ClassVar[str] = "files"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The sink of `path` and `format`; raises where it is none of `FORMATS` or on no mounted file system."""
        unknown = sorted(set(options) - {"path", "format"})
        if unknown or "path" not in options:
            wrong = f"unknown sink option {unknown[0]!r}" if unknown else "a sink of files needs a path"
            raise SinkError(wrong, place="sink", remedy="use path and format")
        format = options.get("format", "parquet")
        if format not in FORMATS:
            raise SinkError(f"unknown format {format!r}", place="sink", remedy=f"use one of: {', '.join(FORMATS)}")
        return cls(local_path(options["path"]), format)

    def to_json(self) -> dict[str, Any]:
        """Path and format; a sink without a type is one of files."""
        return {"format": self.format, "path": self.path}

    def open(self) -> None:
        """See now rather than in the middle of a step whether the folder can be written."""
        try:
            os.makedirs(self.path, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise cannot_write(error, self.path) from error

    def stage(self, step: int, scratch: str) -> Staging:
        """Beside the steps in place, so that committing is renaming."""
        return Staging(f"{self.path}/{STAGING}/step={step:08d}", self.format)

    def commit(self, staged: StagedStep) -> None:
        """Put the step's files in place; raises where they are neither staged nor there."""
        self.write(staged)

    def write(self, staged: StagedStep) -> None:
        """Rename the files into the step's folder; those of other attempts are left behind."""
        final, ready = self._final(staged.step), f"{staged.staging.folder}.ready"
        try:
            if not os.path.isdir(final):
                os.makedirs(ready, exist_ok=True)
                for file, path in zip(staged.files, staged.paths, strict=True):
                    _gather(staged.step, path, f"{ready}/{file}")
                os.rename(ready, final)
        except OSError as error:
            raise cannot_write(error, final) from error
        shutil.rmtree(ready, ignore_errors=True)

    def forget_after(self, name: str, step: int) -> None:
        """Remove the folders of later steps."""
        for folder in names_in(self.path):
            if (match := _STEP.fullmatch(folder)) and int(match[1]) > step:
                shutil.rmtree(f"{self.path}/{folder}")

    def _final(self, step: int) -> str:
        return f"{self.path}/step={step:08d}"


def local_path(path: str | os.PathLike[str]) -> str:
    """A path on a file system that this machine has mounted; `file:` is taken off."""
    text = os.fspath(path)
    plain = text.removeprefix("file://") if text.startswith("file://") else text.removeprefix("file:")
    if "://" in plain:
        raise SinkError(
            f"{plain.partition(':')[0]} is not a mounted file system",
            place=text,
            remedy="name a path mounted on every machine, or write with a function f(DataFrame, step, query)",
        )
    return os.path.abspath(plain)


def _gather(step: int, source: str, target: str) -> None:
    try:
        os.rename(source, target)
    except FileNotFoundError:
        if not os.path.exists(target):  # An interrupted call may have moved it.
            raise SinkError(
                f"the results of step {step} are gone",
                place=source,
                remedy="go back to an older manifest and let the step be done again",
            ) from None
