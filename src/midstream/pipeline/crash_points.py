"""Named points of a step at which a test may have the driver killed, as a power cut would.

The environment variable `MIDSTREAM_KILL_AT` names one: `point:step`, with a point of `POINTS` or of
`SPREAD_POINTS`, or with `AMID_PIECES`. Without it nothing happens.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

POINTS = (
    "before_job",
    "amid_tasks",
    "after_chunks",
    "before_manifest",
    "after_manifest",
    "before_sink",
    "after_sink",
)
"""In the order in which a step passes them."""

SPREAD_POINTS = ("amid_placing", "amid_hop_1", "amid_hop_2")
"""Those that a task passes besides, after `amid_tasks`, where a query of three streams is spread over nodes."""

AMID_PIECES = "amid_pieces"
"""Passed before `amid_tasks` where an answer is staged in pieces, whenever one has been made after another."""


@dataclass(frozen=True)
class CrashPoint:
    """The point and step at which `processes` die, as `point:step`; empty for none. It travels to the tasks."""

    at: str = ""
    processes: tuple[int, ...] = ()

    @staticmethod
    def of_environment(*processes: int) -> CrashPoint:
        """Read the point that the environment names."""
        return CrashPoint(os.environ.get("MIDSTREAM_KILL_AT", ""), processes)

    def reach(self, point: str, step: int) -> None:
        """Kill the processes if this is the point and the step to die at."""
        if self.at == f"{point}:{step}":
            for process in self.processes:
                os.kill(process, signal.SIGKILL)
