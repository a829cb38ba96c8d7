"""HybMig's figures over time, judged on made-up courses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from midstream.lab.figure import Claim
from midstream.lab.figures import hybmig_22, hybmig_courses
from midstream.lab.figures.hybmig_22 import HybMig22
from midstream.lab.figures.hybmig_courses import HybMig15, HybMig16
from midstream.lab.tidy import table

TIMES = [round(0.02 * at, 2) for at in range(1, 61)]
Course = Callable[[float], float]


def over_time(courses: dict[str, Course], value: str, **others: Course) -> pa.Table:
    return table(
        {"case": case, "time (windows)": time, value: float(course(time)), **{k: f(time) for k, f in others.items()}}
        for case, course in courses.items()
        for time in TIMES
    )


def output(**changes: Course) -> pa.Table:
    courses: dict[str, Course] = {
        "due": lambda t: 10.0,
        "moving_state": lambda t: 0.0 if t < 0.1 else 40.0 if t < 0.15 else 10.0,
        "parallel_track": lambda t: 10.0 * max(0.0, 1 - t**2) if t <= 1 else 300.0 if t == 1.02 else 10.0,
        "hybmig": lambda t: 10.0,
    }
    return over_time({**courses, **changes}, hybmig_courses.RATE, **{hybmig_courses.DELAY: lambda t: 0.5})


def test_the_paper_s_figure_15_would_hold() -> None:
    assert [v.claim.text for v in HybMig15().judge(output()) if not v.holds] == []


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"moving_state": lambda t: 10.0}, [0, 1]),
        ({"parallel_track": lambda t: 10.0}, [2, 3]),
        ({"hybmig": lambda t: 8.0}, [4]),
    ],
)
def test_each_claim_of_figure_15_can_fail(changes: dict[str, Course], lost: list[int]) -> None:
    assert [at for at, v in enumerate(HybMig15().judge(output(**changes))) if not v.holds] == lost


def overhead(**changes: Course) -> pa.Table:
    courses: dict[str, Course] = {
        "moving_state": lambda t: 1000.0 if t < 0.1 else max(1.0, 300 * (1 - t)),
        "parallel_track": lambda t: 100 + 400 * t if t <= 1 else 5.0,
        "hybmig": lambda t: 50 + 10 * t if t <= 1 else 5.0,
    }
    found = {**courses, **changes}
    rows = [
        {"case": case, hybmig_courses.TIME_16: t, hybmig_courses.MEMORY: f(t + 0.02), hybmig_courses.CPU: f(t)}
        for case, f in found.items()
        for t in TIMES
    ]
    return table(rows)


def test_the_paper_s_figure_16_would_hold() -> None:
    assert [v.claim.text for v in HybMig16().judge(overhead()) if not v.holds] == []


def test_hybmig_above_parallel_track_at_one_second_is_reported() -> None:
    verdicts = HybMig16().judge(overhead(hybmig=lambda t: 500.0 if t == 0.3 else 50.0 if t <= 1 else 5.0))
    (lost,) = (v for v in verdicts if not v.holds)
    assert lost.claim is hybmig_courses.ALWAYS and "more comparisons in 1" in lost.numbers


def test_work_is_spread_over_the_time_a_step_takes() -> None:
    trace = hybmig_courses.Trace(steps=(), events=())
    made = [{"begin": 0.0, "end": 2.0, "comparisons": 10}, {"begin": 4.0, "end": 4.0, "comparisons": 6}]

    class Made(hybmig_courses.Trace):
        def column(self, name: str) -> hybmig_courses.Numbers:
            return np.array([step[name] for step in made], np.float64)

    done = hybmig_courses._done(Made(trace.steps, trace.events), np.array([0.0, 1.0, 2.0, 3.0, 5.0]))
    assert done.tolist() == [0.0, 5.0, 10.0, 10.0, 16.0]


def boxes(busy: Mapping[str, float], **lengths: float) -> pa.Table:
    """Make the figure's data; `busy` results of a case come together, at the end of the busy processor's run."""
    found = {"old": 0.0, "gms": 0.1, "gpt": 1.0, "ghm": 0.2, **lengths}
    rows = []
    for (case, length), tag in product(found.items(), ("", hybmig_22.BUSY)):
        late = busy.get(case, 0.0) if tag else 0.0
        for place, t in enumerate(TIMES):
            rate = late + 1 if place == len(TIMES) - 1 else 1.0 if place >= late else 0.0
            rows.append(
                {
                    "case": case + tag,
                    hybmig_22.TIME: t,
                    hybmig_22.RATE: 0.0 if case == "gms" and t < 0.1 else rate,
                    hybmig_22.CPU: 10.0,
                    hybmig_22.DURATION: length,
                }
            )
    return table(rows)


@pytest.mark.parametrize(
    ("busy", "lengths", "failing"),
    [
        ({}, {}, []),
        ({}, {"ghm": 0.9}, [hybmig_22.EARLIER]),
        ({"ghm": 3.0}, {}, [hybmig_22.SIMILAR]),
        ({"gpt": 2.0}, {}, [hybmig_22.SIMILAR, hybmig_22.NO_BURST]),
        ({"gpt": 1.0, "ghm": 1.0}, {}, []),
    ],
)
def test_figure_22(busy: Mapping[str, float], lengths: Mapping[str, float], failing: list[Claim]) -> None:
    assert [v.claim for v in HybMig22().judge(boxes(busy, **lengths)) if not v.holds] == failing
