"""How random cases are drawn: each random suite in fifths, of which `make test` runs one and `make verify` all.

`MIDSTREAM_PROFILE` is `test` (the same cases each time) or `soak` (more cases, new ones each time).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, Phase, settings

PROFILE = os.environ.get("MIDSTREAM_PROFILE", "test")
SOAK = PROFILE == "soak"
FIFTHS = range(5)


def chosen_fifth() -> int:
    """Return the fifth that `make test` runs: `MIDSTREAM_FIFTH`, or the one that the commit chooses.

    The number is kept in the environment, so that all processes of a run choose alike.
    """
    if "MIDSTREAM_FIFTH" not in os.environ:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
        # A hash of the hash: every digit of the commit counts.
        os.environ["MIDSTREAM_FIFTH"] = str(hashlib.sha256(head.stdout.encode()).digest()[0] % len(FIFTHS))
    return int(os.environ["MIDSTREAM_FIFTH"])


def fifths() -> list[ParameterSet]:
    """Return the parameters of a random test; `make test` runs the chosen fifth, a soak runs all."""
    chosen = chosen_fifth()
    marks = {fifth: () if fifth == chosen or SOAK else (pytest.mark.verify,) for fifth in FIFTHS}
    return [pytest.param(fifth, marks=marks[fifth], id=f"fifth{fifth}") for fifth in FIFTHS]


def drawing(cases: int, *, soak: int = 10, shrink: bool = False) -> settings:
    """Return the settings of a random test.

    Args:
        cases: How many cases all fifths draw together.
        soak: How many times as many a soak draws.
        shrink: Whether Hypothesis reduces a case that fails. To draw again is slow where a case is large.
    """
    return settings(
        max_examples=cases * soak if SOAK else cases,
        derandomize=not SOAK,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def seeds(count: int) -> list[ParameterSet]:
    """Return the parameters of a test that draws by seeds; a fifth of them runs in `make test`."""
    chosen = chosen_fifth()
    return [
        pytest.param(seed, marks=() if seed % len(FIFTHS) == chosen or SOAK else (pytest.mark.verify,))
        for seed in range(count)
    ]
