"""Twenty queries that share one chain of joins, and so their plan."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.optimizer.scenarios.selectivity_flip import SELECTIVITY_FLIP

MANY_QUERIES = replace(
    SELECTIVITY_FLIP,
    name="many_queries",
    title="the drift of selectivity_flip under twenty queries, which share their states and move together",
    queries=20,
    scale=0.5,
    seed=13,
)
