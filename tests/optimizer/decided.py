"""What policies decide over five streams that are alike, so that many plans cost the same: as JSON, to be compared."""

from __future__ import annotations

import json
import sys

import midstream as ms
from midstream.model.codec import encode
from tests.optimizer.drifting import COLUMNS, query, rows

STREAMS = "ABCDE"


def decided(policy: str) -> dict[str, object]:
    """The plan, the events and all that is kept of a course."""
    made = ms.Engine()
    for name in STREAMS:
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.add_query("q", query(STREAMS, window=3), plan="((((A B) C) D) E)")
    made.optimize("q", policy=policy, review="1 second", effort=1.0, mode="auto")
    for step in range(10):
        many = rows(step, {"A": 7}, rate=11)["A"]
        few = many.slice(0, 5)
        made.push({"A": many, "B": many, "C": many, "D": few, "E": few})
    return {
        "plan": made.manifest.queries["q"].plan,
        "events": [repr(event) for event in made.events],
        "kept": {name: encode(kept) for name, kept in made.manifest.optimizations.items()},
    }


if __name__ == "__main__":
    json.dump({policy: decided(policy) for policy in sys.argv[1:]}, sys.stdout, sort_keys=True)
