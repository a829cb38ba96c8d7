"""Hold a process to one core, so that "one thread" means the same for every peer."""

from __future__ import annotations

import os

import pyarrow as pa


def keep_to_one_core() -> None:
    """Keep this process, and every thread it will start, on one core (where the system can)."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
