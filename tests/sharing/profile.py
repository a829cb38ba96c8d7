"""How many cases are drawn: `MIDSTREAM_PROFILE` is `test` (always the same), `soak` (forty times, new) or `quick`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("MIDSTREAM_PROFILE", "test")


def many(cases: int) -> Callable[[Any], Any]:
    """Draw so many cases in `make test`; one that fails makes itself smaller, which is quicker than to draw again."""
    count = {"soak": 40 * cases, "quick": cases // 4}.get(PROFILE, cases)
    fixed = PROFILE != "soak"
    return settings(
        max_examples=count,
        derandomize=fixed,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
