"""A replay in another process decides the same: nothing depends on the order in which a set is walked."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.forked import PATHS

POLICIES = ("adaptive", "lambda_chart", "random")


def test_what_is_decided_and_kept_does_not_depend_on_the_hashes_of_strings() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.optimizer.decided", *POLICIES],
            env={**os.environ, "PYTHONPATH": PATHS, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "2")
    ]
    one, other = (json.loads(process.communicate()[0]) for process in running)
    for policy in POLICIES:
        assert one[policy] == other[policy]
        assert any("PlanReviewed" in event and "switch" in event for event in one[policy]["events"])
