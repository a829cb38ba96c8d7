"""Commands that begin queries are admitted to a step once their sinks are seen to take results."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.checkpoint.folders import Folders
from midstream.job.outputs import Outputs
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import PASSING, MidstreamError
from midstream.model.events import CommandRefused
from midstream.model.manifest import Manifest
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.base import taken
from midstream.step.plan_step import plan_step


def admitted(
    outputs: Outputs, manifest: Manifest, given: Sequence[Command], ahead: Sequence[Command] = ()
) -> tuple[tuple[Command, ...], tuple[CommandRefused, ...]]:
    """Those of the commands of a log that the next step may take after the ones `ahead`, and refusals of the others.

    A query whose sink cannot be opened, or has what is not this job's, would have the step fail, and every one after
    it: it is refused, and all else runs on. Not so where a fault that may pass is the checkpoint's as well, or where a
    function is missing that whoever started the job can name again: then the step fails, and waits for that.
    """
    admitted_ones, refused = list[Command](), list[CommandRefused]()
    begins_some = any(isinstance(command, AddQuery) for command in given)
    current = plan_step(manifest, ahead).manifest if begins_some else manifest
    for command in given:
        after = _after(current, command) if begins_some else current
        if isinstance(command, AddQuery) and command.query in after.queries and command.query not in manifest.queries:
            try:
                if "function" not in (command.sink or {}):
                    outputs.check_new(command.query, command.sink, after, manifest)
            except MidstreamError as error:
                if isinstance(error, PASSING) and _is_in(outputs.folders, command):
                    raise
                refused.append(CommandRefused(manifest.step + 1, encode(command), str(error)))
                continue
        current = after
        admitted_ones.append(command)
    return tuple(admitted_ones), tuple(refused)


def _after(manifest: Manifest, command: Command) -> Manifest:
    """The manifest as a command leaves it; as it was, where the step will refuse the command."""
    try:
        return taken(manifest, command)
    except MidstreamError:
        return manifest


def _is_in(folders: Folders, command: AddQuery) -> bool:
    """Whether the results are to go where the checkpoint is."""
    return not command.sink or str(command.sink.get("path", "")).startswith(f"{folders.root}/")
