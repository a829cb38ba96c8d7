"""How random cases are drawn: `MIDSTREAM_PROFILE` is `test` (always the same), `soak` (more, new) or `quick`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("MIDSTREAM_PROFILE", "test")


def drawing(cases: int) -> settings:
    """The settings for so many cases; one that fails makes itself smaller, which is quicker than to draw again."""
    return settings(
        max_examples=cases,
        derandomize=PROFILE != "soak",
        database=None,
        deadline=None,
        phases=[Phase.generate],
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
