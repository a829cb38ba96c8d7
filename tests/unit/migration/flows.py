"""Streams for the cost models: Poisson arrivals and uniform keys, drawn from a seed; engines that have warmed up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from midstream.model.events import MigrationEnded, StepDone
from tests.unit.building import engine, table

Rates = Mapping[str, float]


def flow(rates: Rates, keys: Mapping[str, int], begin: float, end: float, seed: int = 7) -> dict[str, Any]:
    """Rows of each stream in [begin, end): Poisson arrivals of its rate, keys k and j uniform below its number."""
    tables = {}
    for at, (name, rate) in enumerate(sorted(rates.items())):
        random = np.random.default_rng([seed, at, int(begin * 1000)])
        times = begin + np.sort(random.uniform(0, end - begin, random.poisson(rate * (end - begin))))
        drawn = {column: random.integers(0, keys[name], len(times)).tolist() for column in "kj"}
        tables[name] = table(times.tolist(), **drawn)
    return tables


def warm(sql: str, plan: str, rates: Rates, keys: Mapping[str, int], until: float, step: float = 1.0) -> Any:
    """An engine whose query `q` has seen the flow up to a time, a step at a time."""
    made = engine("".join(sorted(rates)))
    made.add_query("q", sql, plan=plan)
    advance(made, rates, keys, 0, until, step)
    return made


def advance(made: Any, rates: Rates, keys: Mapping[str, int], begin: float, end: float, step: float = 1.0) -> None:
    """Push the flow from one time to another."""
    for at in np.arange(begin, end, step).tolist():
        made.push(flow(rates, keys, at, at + step))


def ended(made: Any) -> MigrationEnded:
    """The one migration that ended."""
    (event,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    return event


def worked(made: Any) -> list[int]:
    """The comparisons of each step."""
    return [event.comparisons for event in made.events if isinstance(event, StepDone)]
