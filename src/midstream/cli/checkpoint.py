"""A checkpoint as the commands see it: the newest manifest, the command log and the event log, without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.console import Failed, WrongUse

if TYPE_CHECKING:
    from midstream.checkpoint.command_log import CommandLog
    from midstream.checkpoint.manifest_log import ManifestLog
    from midstream.model.commands import Command
    from midstream.model.manifest import Manifest

CheckpointPath = Annotated[Path, typer.Argument(metavar="CKPT", help="The job's checkpoint folder.")]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a running query.")]


@dataclass(frozen=True)
class Checkpoint:
    """A job seen through its checkpoint folder; the job may be running or not."""

    path: Path

    @staticmethod
    def at(path: Path) -> Checkpoint:
        """The checkpoint in a folder; refuses a folder that holds none."""
        if not (path / "manifests").is_dir():
            raise WrongUse(
                "there is no checkpoint here" if path.is_dir() else "there is no such folder",
                place=str(path),
                remedy="name the checkpoint folder of a job, the one its job file or ms.Job names",
            )
        return Checkpoint(path)

    @cached_property
    def manifests(self) -> ManifestLog:
        """The manifest log."""
        from midstream.checkpoint.manifest_log import ManifestLog

        return ManifestLog(self.path / "manifests")

    @cached_property
    def commands(self) -> CommandLog:
        """The command log."""
        from midstream.checkpoint.command_log import CommandLog

        return CommandLog(self.path / "commands")

    def manifest(self) -> Manifest:
        """The newest manifest; fails where no step is done."""
        newest = self.manifests.latest()
        if newest is None or newest.step < 0:
            raise Failed(
                "the job has not finished a step yet",
                place=str(self.path),
                remedy="try again when its first step is done",
            )
        return newest

    def upcoming(self, manifest: Manifest) -> Manifest:
        """The job as the commands that no step has taken yet will leave it; those it will refuse change nothing."""
        from midstream.step.plan_step import plan_step

        waiting = [*manifest.pending, *(command for _, command in self.waiting(manifest))]
        return plan_step(manifest, waiting).manifest

    def send(self, command: Command) -> int:
        """Append a command to the log and return its number; the job takes it at the beginning of its next step."""
        return self.commands.append(command)

    def waiting(self, manifest: Manifest) -> tuple[tuple[int, Command], ...]:
        """Commands that no step has taken yet."""
        return tuple(self.commands.after(manifest.last_command))

    def events(self, after: int = -1) -> Iterator[dict[str, Any]]:
        """What happened in the steps after `after`, oldest first, as JSON values."""
        for file in sorted(self._event_files(), key=_step_of):
            if _step_of(file) > after:
                yield from _read_events(file)

    def last_events(self, count: int) -> list[dict[str, Any]]:
        """The last `count` events, oldest first."""
        found: list[dict[str, Any]] = []
        for file in sorted(self._event_files(), key=_step_of, reverse=True):
            if len(found) >= count:
                break
            found = _read_events(file) + found
        return found[-count:] if count else []

    def _event_files(self) -> list[Path]:
        folder = self.path / "events"
        return [f for f in folder.iterdir() if f.suffix == ".jsonl"] if folder.is_dir() else []


def _step_of(file: Path) -> int:
    digits = re.search(r"\d+", file.stem)
    return int(digits.group()) if digits else -1


def _read_events(file: Path) -> list[dict[str, Any]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # swept between the listing and the reading
        return []
    return [json.loads(line) for line in lines if line.strip()]
