"""What is measured of a run, computed from its trace alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.plan_change.answer import Marks, lost_and_doubled
from benchmarks.plan_change.load import Load
from benchmarks.plan_change.scenario import Scenario
from benchmarks.plan_change.trace import Trace

AFTER = 1.2
"""Windows after the last change of plan that still count as the change: by then every old row is spent."""

PIECE = 0.25
"""Windows over which the lowest rate of output is looked for."""

GAP_ALLOWED = 1.5
"""How many times the gap without a migration the best strategy's may be."""


@dataclass(frozen=True)
class Measures:
    """The row of one run. The change is the time from the first change of plan to 1.2 windows after the last.

    `gap` is the longest time without output that touches the change, and `gap_ratio` the same over that of the run
    without a migration. `rate` and `lowest_rate` are results a second over the change and over its poorest quarter
    window. Delays are from the arrival of a result's last row to its output; `pause` is the longest step. `extra` are
    comparisons that the changes cost; `comparisons_ratio` and `state_ratio` set all comparisons from the first change
    on, and the greatest state, against the run without a migration. `alone` is the time from the last request to the
    moment at which the new plan stood alone. `load` is the share of the window after the first change in which the
    engine worked.
    """

    gap: float
    gap_ratio: float
    rate: float
    lowest_rate: float
    delay_p99: float
    delay_max: float
    pause: float
    extra: int
    comparisons_ratio: float
    peak_rows: int
    state_ratio: float
    alone: float | None
    lost: int
    doubled: int
    load: float

    def to_json(self) -> dict[str, Any]:
        """The measures as JSON values."""
        return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Measures:
        """The measures that `to_json` wrote."""
        return Measures(**value)


def change_of(scenario: Scenario, load: Load) -> tuple[float, float]:
    """From when to when a run counts as in the change, in seconds; the same for all contestants."""
    first, last = scenario.changes[0].at, scenario.changes[-1].at
    return first * load.window, (last + AFTER) * load.window


def measure(trace: Trace, reference: Trace, truth: Marks, scenario: Scenario, load: Load) -> Measures:
    """The measures of a run against the one without a migration; `truth` are the results that it must have given."""
    since, until = change_of(scenario, load)
    gap = longest_gap(trace, since, until)
    inside = (trace.out >= since) & (trace.out <= until)
    delays = trace.delays[inside] if inside.any() else np.array([until - since])  # Nothing came out all the while.
    lost, doubled = lost_and_doubled(truth, trace.marks)
    asked = trace.asked[-1] if trace.asked else 0.0
    return Measures(
        gap=gap,
        gap_ratio=gap / longest_gap(reference, since, until),
        rate=float(inside.sum() / (until - since)),
        lowest_rate=lowest_rate(trace, since, until, PIECE * load.window),
        delay_p99=float(np.quantile(delays, 0.99)),
        delay_max=float(delays.max()),
        pause=max((step.seconds for step in trace.steps if since <= step.at <= until), default=0.0),
        extra=trace.extra,
        comparisons_ratio=comparisons(trace, since) / max(1, comparisons(reference, since)),
        peak_rows=peak_rows(trace, since, until),
        state_ratio=peak_rows(trace, since, until) / max(1, peak_rows(reference, since, until)),
        alone=None if trace.alone is None or not trace.asked else trace.alone - asked,
        lost=lost,
        doubled=doubled,
        load=busy(trace, since, since + load.window),
    )


def longest_gap(trace: Trace, since: float, until: float) -> float:
    """The longest time between two outputs, of the times that touch the change."""
    moments = [0.0, *(step.at for step in trace.steps if step.results)]
    moments.append(max(until, moments[-1]) if moments[-1] < until else moments[-1])
    pairs = pairwise(moments)
    return max(later - earlier for earlier, later in pairs if later >= since and earlier <= until)


def lowest_rate(trace: Trace, since: float, until: float, span: float) -> float:
    """The fewest results a second in any of the pieces that the change is cut into."""
    edges = np.linspace(since, until, max(1, round((until - since) / span)) + 1)
    counts, _ = np.histogram(trace.out, edges)
    return float((counts / np.diff(edges)).min())


def comparisons(trace: Trace, since: float) -> int:
    """Comparisons of all steps from a time on."""
    return sum(step.comparisons for step in trace.steps if step.at >= since)


def peak_rows(trace: Trace, since: float, until: float) -> int:
    """The most rows that were held after a step of the change."""
    return max((step.state_rows for step in trace.steps if since <= step.at <= until), default=0)


def busy(trace: Trace, since: float, until: float) -> float:
    """The share of a time in which the engine worked."""
    return sum(step.seconds for step in trace.steps if since <= step.at <= until) / (until - since)
