"""What figures ask of a trace."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.lab.trace import Step, Trace
from midstream.model.events import MigrationBegun, MigrationEnded


def step(number: int, begin: float, end: float, results: int = 0, state_rows: int = 0) -> Step:
    return Step(number, begin, end, begin, 1, 0, results, 0.0, 10, 0, 0, 0, 10.0, state_rows, 0)


STEPS = (step(0, 1, 1.5, 4, 7), step(1, 2, 2.5, 0, 9), step(2, 3, 5.5, 2, 3), step(3, 5.5, 6, 0, 3))


def test_totals_and_peaks_of_a_span() -> None:
    trace = Trace(STEPS, ())
    assert trace.total("comparisons") == 40
    assert trace.total("comparisons", since=2, until=5.5) == 20
    assert trace.peak("state_rows", since=3) == 3
    assert trace.peak("state_rows", since=7) == 0


def test_results_count_in_the_bin_they_come_out_in() -> None:
    middles, rates = Trace(STEPS, ()).rate(2.0, 6.0)
    assert middles.tolist() == [1, 3, 5]
    assert rates.tolist() == [2, 0, 1]


def test_a_level_is_what_the_last_step_left() -> None:
    assert Trace(STEPS, ()).level("state_rows", np.array([0.0, 1.5, 2.4, 2.5, 5.0, 9.0])).tolist() == [0, 7, 7, 9, 9, 3]


def test_silence_is_the_longest_gap() -> None:
    trace = Trace(STEPS, ())
    assert trace.silence(since=1.5) == 4
    assert trace.silence(since=1.5, until=3) == 1.5
    assert trace.silence(since=5.5) == 0.5


def test_stages_pair_beginnings_with_ends() -> None:
    events = (
        MigrationBegun(0, "q", "jisc", "(A B)", "(B A)"),
        MigrationBegun(1, "q", "jisc", "(B A)", "(A B)"),
        MigrationEnded(2, "q", "jisc", "(B A)", 5, {}),
    )
    first, second = Trace(STEPS, events).stages
    assert (first.began, first.ended, first.comparisons) == (1, 5.5, 5)
    assert first.length == 4.5 and first.arrivals == 2
    assert second.ended is None and second.length == float("inf")
    with pytest.raises(ValueError):
        _ = Trace(STEPS, events).stage
