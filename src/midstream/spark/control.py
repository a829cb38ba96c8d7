"""Wishes to a running job, and what it says of itself; works on a checkpoint alone, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.checkpoint.command_log import CommandLog
from midstream.model.commands import Command
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.runtime.lane import BEGINNING
from midstream.runtime.watermark import watermarks
from midstream.step.conclude import state_bytes, state_rows
from midstream.step.plan_step import plan_step, take


def send(manifest: Manifest, log: CommandLog, ahead: tuple[Command, ...], command: Command) -> int:
    """Put a command in the log; what is wrong with it is raised at once and nothing is logged.

    `ahead` are commands that will be taken before those of the log.
    """
    waiting = [*ahead, *(other for _, other in log.after(manifest.last_command))]
    upcoming = plan_step(manifest, waiting).manifest
    take(upcoming, command, {}, [])
    return log.append(command)


def status(manifest: Manifest, log: CommandLog, events: tuple[Event, ...], state: str) -> dict[str, Any]:
    """A job at a glance, as JSON values."""
    marks = watermarks(manifest.streams, manifest.progress)
    done = [event.to_json() for event in events if event.kind == "step_done"]
    return {
        "state": state,
        "step": manifest.step,
        "lanes": manifest.lanes,
        "sharing": manifest.sharing,
        "streams": {name: _stream(manifest, name, marks) for name in manifest.streams},
        "queries": {
            name: {
                "plan": entry.plan,
                "sql": entry.sql,
                "since": entry.since,
                "sees": entry.sees,
                "exact_from": entry.exact_from,
                "sink": dict(entry.sink or {}),
                "counters": entry.counters.to_json(),
                "migration": _migration(manifest, name),
            }
            for name, entry in manifest.queries.items()
        },
        "state_rows": state_rows(manifest),
        "state_bytes": state_bytes(manifest),
        "waiting_commands": [c.to_json() for _, c in log.after(manifest.last_command)],
        "last_step": done[-1] if done else None,
    }


def _stream(manifest: Manifest, name: str, marks: Mapping[str, int]) -> dict[str, Any]:
    progress = manifest.progress.get(name)
    counts = {k: vars(progress)[k] if progress else 0 for k in ("rows", "late", "rejected")}
    return {"watermark": None if marks[name] == BEGINNING else marks[name], **counts}


def _migration(manifest: Manifest, name: str) -> str | None:
    boxes = [lane.boxes[name]["box"] for lane in manifest.lane_states.values() if name in lane.boxes]
    return next((box for box in boxes if box != "plan"), None)
