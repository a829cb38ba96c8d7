"""Named points of a step at which a test may have the driver killed, as a power cut would.

The environment variable `MIDSTREAM_KILL_AT` names one: `point:step`, with a point of `POINTS`. Without it nothing
happens.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

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


def reach(point: str, step: int, victims: Sequence[int]) -> None:
    """Kill the processes `victims` if this is the point and the step to die at."""
    if os.environ.get("MIDSTREAM_KILL_AT") == f"{point}:{step}":
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
