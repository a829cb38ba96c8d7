"""How many cases are drawn: `MIDSTREAM_PROFILE` is `test` (100, always the same), `soak` (2,000) or `quick` (20)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

COMMON: dict[str, Any] = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("test", max_examples=100, derandomize=True, database=None, **COMMON)
settings.register_profile("quick", max_examples=20, derandomize=True, database=None, **COMMON)
settings.register_profile("soak", max_examples=2000, **COMMON)
settings.load_profile(os.environ.get("MIDSTREAM_PROFILE", "test"))
