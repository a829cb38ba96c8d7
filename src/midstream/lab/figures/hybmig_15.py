"""HybMig Fig. 15: the output rate during the migration phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_settings import METHODS, SMOOTH, SPAN, HybMigTask, Machine
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "HybMig §5.1, Fig. 15"
ZERO = Claim("The output rate of MS is zero while it recomputes states (the first 50 of 180 seconds).", SOURCE)
SOARS = Claim("After that, MS processes delayed input and its output rate soars.", SOURCE)
FALLS = Claim("The output rate of PT constantly decreases, reaching zero at w.", SOURCE)
BURST = Claim("A burst after the end of the migration occurs when PT releases the contents of its buffer.", SOURCE)
STEADY = Claim("HybMig has a steady output rate.", SOURCE)
SECOND = Claim("With HybMig no output tuple is delayed more than 1 second.", SOURCE)

TIME, RATE, DELAY, DUE = "time (windows)", "results a second", "greatest delay (s)", "due"
"""`due` is the case of the results as they fall due, whatever the plan."""

EARLY = 0.2
"""In windows: when MS has caught up."""


class HybMig15(Figure):
    """Output rate over time: w = 3, tau = 1, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_15"
    title: ClassVar[str] = "output rate over time"
    paper: ClassVar[str] = "HybMig"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track", "hybmig"})
    setting: ClassVar[str] = f"{SMOOTH} w = 3, tau = 1, n = 6, to the right-deep plan; a step every half second."

    @override
    def measure(self, scale: Scale) -> pa.Table:
        task = HybMigTask(Machine.smooth(scale), ticks=scale.pick(quick=72, full=180))
        rows = []
        for case, trace in [(DUE, task.undisturbed()), *((name, task.method(name)) for name in METHODS)]:
            ends, greatest = trace.column("end"), trace.column("delay_greatest")
            middles, rate = trace.rate(1.0, max(task.end, float(ends[-1])) + 1.0)
            for middle, found in zip(middles, rate, strict=True):
                if middle > task.start:
                    within = (ends >= middle - 0.5) & (ends < middle + 0.5)
                    rows.append(
                        {
                            "case": case,
                            TIME: (middle - task.start) / task.seconds,
                            RATE: found,
                            DELAY: float(greatest[within].max(initial=0.0)),
                        }
                    )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        times = {case: column(data, TIME, case=case) for case in (DUE, *METHODS)}
        rates = {case: column(data, RATE, case=case) for case in (DUE, *METHODS)}
        ms, pt, hybmig, due = (rates[case] for case in ("moving_state", "parallel_track", "hybmig", DUE))
        early = times["moving_state"] < EARLY
        quiet = times["moving_state"][np.flatnonzero(ms)[0]]
        missed = due[times[DUE] < quiet].sum()
        soars = ms[early].max() / due[early[: len(due)]].max()
        quarters = [_share(times, rates, "parallel_track", at / 4, (at + 1) / 4) for at in range(4)]
        last = _share(times, rates, "parallel_track", 0.96, 1.0)
        burst = pt[times["parallel_track"] > 1.0].max()
        usual = due[(times[DUE] > 0.9) & (times[DUE] < 1.1)].mean()
        size = min(len(hybmig), len(due))
        unlike = np.abs(np.cumsum(hybmig[:size]) - np.cumsum(due[:size])).max() / due.sum()
        delay = column(data, DELAY, case="hybmig").max()
        return (
            ZERO.judged(
                missed > 0,
                f"no result during the first {quiet:.2f} w (paper: 0.28 w), in which {missed:.0f} fall due",
                "recomputation is over before results are missed",
            ),
            SOARS.judged(
                soars > 1.2,
                f"within {EARLY} w at most {soars:.2f} times the results a second that fall due",
                "a rebuilding costs no more than a few seconds of the load that follows, so little input is delayed",
            ),
            FALLS.judged(
                quarters == sorted(quarters, reverse=True) and last < 0.3,
                f"of the results due in each quarter of w it gives {', '.join(f'{q:.0%}' for q in quarters)}; "
                f"in the last 4 % of w {last:.0%}",
                "the share does not fall",
            ),
            BURST.judged(
                burst > 2 * usual,
                f"{burst:g} results in the second after the end, where {usual:.0f} a second fall due",
                "nothing was held back",
            ),
            STEADY.judged(
                unlike < 0.02,
                f"at any second it has given all results due but {unlike:.2%} of the run's",
                "results lag behind",
            ),
            SECOND.judged(
                delay <= 1.0,
                f"greatest delay {delay:.2f} s, a row's wait for its step included; with MS "
                f"{column(data, DELAY, case='moving_state').max():.2f} s, with PT "
                f"{column(data, DELAY, case='parallel_track').max():.2f} s",
                "the old plan lags",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, RATE)
        axes.set_yscale("symlog", linthresh=10)
        axes.set_xlim(0, SPAN + 0.1)
        mark(axes, 1.0, "w")


def _share(times: Mapping[str, Numbers], rates: Mapping[str, Numbers], case: str, start: float, end: float) -> float:
    # The share of the results due within a span that a case gives in it.
    given, due = (rates[c][(times[c] > start) & (times[c] <= end)].sum() for c in (case, DUE))
    return float(given / due)
