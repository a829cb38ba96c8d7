"""How much processor time reviews take: no counter of the engine has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from midstream.state.store.chunk_store import ChunkStore
from midstream.step import plan_step
from midstream.step.draft import Draft


@dataclass
class ReviewTime:
    """Seconds of processor time so far, of the thread that plans steps."""

    seconds: float = 0.0


@contextmanager
def review_time() -> Iterator[ReviewTime]:
    """Measure what reviews take in this process meanwhile."""
    spent, review = ReviewTime(), plan_step.review

    def measured(draft: Draft, store: ChunkStore) -> Draft:
        begun = time.thread_time()
        try:
            return review(draft, store)
        finally:
            spent.seconds += time.thread_time() - begun

    plan_step.review = measured
    try:
        yield spent
    finally:
        plan_step.review = review
