"""How much processor time reviews take: no counter of the engine has it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from midstream.model.ids import CounterKey
from midstream.review.carry_out import review
from midstream.state.chunk_store import ChunkStore
from midstream.step import plan_step
from midstream.units.draft import Draft


@dataclass
class ReviewTime:
    """Seconds of processor time so far, of the thread that plans steps."""

    seconds: float = 0.0


@contextmanager
def review_time() -> Iterator[ReviewTime]:
    """Measure what reviews take in this process meanwhile."""
    spent = ReviewTime()

    def measured(draft: Draft, store: ChunkStore, exceeded: Mapping[CounterKey, int] | None = None) -> Draft:
        begun = time.thread_time()
        try:
            return review(draft, store, exceeded)
        finally:
            spent.seconds += time.thread_time() - begun

    with patch.object(plan_step, "review", measured):
        yield spent
