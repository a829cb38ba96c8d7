"""Commands to a running job, and how it stands; works on a checkpoint alone, without Spark."""

from __future__ import annotations

from typing import Any

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.report_values import Report
from midstream.model.commands import Command
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.step.plan_step import plan_step, take


def send(manifest: Manifest, log: CommandLog, ahead: tuple[Command, ...], command: Command) -> int:
    """Put a command in the log; what is wrong with it is raised at once and nothing is logged.

    `ahead` are commands that will be taken before those of the log.
    """
    waiting = [*ahead, *(other for _, other in log.after(manifest.last_command))]
    upcoming = plan_step(manifest, waiting).manifest
    take(upcoming, command, {}, [])
    return log.append(command)


def status(report: Report, waiting: tuple[tuple[int, Command], ...], events: tuple[Event, ...], state: str) -> Any:
    """A run at a glance, as JSON values: its report, the commands it has not taken yet, and its last step."""
    done = [event.to_json() for event in events if event.kind == "step_done"]
    return {
        "state": state,
        **report.to_json(),
        "waiting_commands": [command.to_json() for _, command in waiting],
        "last_step": done[-1] if done else None,
    }
