"""What is done once in a Python worker of Spark that runs tasks of steps."""

from __future__ import annotations

import gc
from functools import cache


@cache
def leave_loaded_code_alone() -> None:
    """Take what is loaded by now out of garbage collection; call this when a first task is done.

    Spark has its workers collect garbage after every task. To look through all that numpy, Arrow and this package
    consist of takes 20 to 40 ms of processor time, while the driver works or the next task waits.
    """
    gc.collect()
    gc.freeze()
