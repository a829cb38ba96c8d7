"""How often Python looks for garbage while tests run."""

from __future__ import annotations

import atexit
import gc


def look_seldom() -> None:
    """Leave alone what is there already, and look after every 100,000 new objects.

    By default it is every 700, and a sixth of the time goes by with it: cases are many and small, and leave few cycles.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # DuckDB's binding complains of what is not freed in the end.
    gc.set_threshold(100_000, 20, 50)
