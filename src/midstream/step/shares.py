"""In how many shares the state of many lanes is held.

A lane that is a step of its own costs its part of the fixed work and lists chunks of its own. That pays where lanes run
side by side; lanes that would only run one after the other in a thread are held as one. Rows carry their slot, so that
shares are spread anew as lanes are.
"""

from __future__ import annotations

from dataclasses import replace

from midstream.model.lanes import StepTiming
from midstream.model.manifest import Manifest

MOST_APART = 8
"""So many lanes are each held by themselves, however few threads there are."""


def held_in(lanes: int, threads: int) -> int:
    """Compute the number of shares that so many lanes are held in by so many threads; 0: each lane by itself.

    >>> held_in(8, threads=1), held_in(256, threads=4), held_in(16, threads=32)
    (0, 4, 0)
    """
    return threads if lanes > max(MOST_APART, threads) else 0


def with_shares(manifest: Manifest, timing: StepTiming | None) -> Manifest:
    """Hold the lanes of a manifest as suits a host; where none says how many threads it has, as they were."""
    threads = manifest.held_in if timing is None or timing.threads is None else timing.threads
    found = held_in(manifest.lanes, threads) if threads else 0
    return manifest if found == manifest.held_in else replace(manifest, held_in=found)
