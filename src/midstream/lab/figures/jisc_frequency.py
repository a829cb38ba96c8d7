"""JISC Figs. 11 and 12: execution time over how often the plan changes, worst case and best case."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import ink, lines, mark_of
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.jisc_settings import METHODS, STREAMS, JoinChain, switch
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers

PERIOD, OPERATIONS, COMPARISONS, TRANSITION = "period", "operations", "comparisons", "transition"

VISIBLE = 1.1
"""The least factor between two costs that a figure would show."""
UNIT = 5
"""Windows in a unit of the period: the paper's million rows are 4.8 windows of 21 streams of 10,000 rows."""

BEST, WORST = "best", "worst"


class FrequencyFigure(Figure):
    """A figure of this family: execution time of a long run, and the others' against JISC's."""

    strategies: ClassVar[frozenset[str]] = frozenset({"jisc", "parallel_track", "cacq"})
    transition: ClassVar[str]
    setting: ClassVar[str] = (
        f"{STREAMS} 20 joins (quick: 10), windows of 20 rows, 2 steps; a transition after every so many units of "
        f"{UNIT} windows (the paper's million rows are 4.8), there and back again, over 10 units (full: 20). "
        "Execution time is operations: pairs compared, rows that enter an operator, hops."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        chain = JoinChain(scale.pick(quick=10, full=20), window=20, steps=2)
        windows = UNIT * scale.pick(quick=10, full=20)
        eddy = chain.play(chain.eddy, windows)
        rows = []
        for transition, plan in ((BEST, chain.best), (WORST, chain.worst)):
            for period in scale.pick(quick=(1, 2, 5), full=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)):
                times = [at * chain.seconds for at in range(period * UNIT, windows, period * UNIT)]
                traces = {"cacq": eddy}
                for case in METHODS:
                    plans = [(plan, chain.old)[number % 2] for number in range(len(times))]
                    moves = [switch(at, to, case) for at, to in zip(times, plans, strict=True)]
                    traces[case] = chain.play(chain.old, windows, moves)
                rows += [
                    {
                        "case": case,
                        TRANSITION: transition,
                        PERIOD: period,
                        OPERATIONS: trace.total("work"),
                        COMPARISONS: trace.total("comparisons"),
                    }
                    for case, trace in sorted(traces.items(), reverse=True)
                ]
        return table(rows)

    def common(self, data: pa.Table) -> tuple[Verdict, ...]:
        """Judge what the text says of both figures."""
        time = {case: self.of(data, case) for case in ("jisc", "parallel_track", "cacq")}
        ratios = {case: time[case] / time["jisc"] for case in ("parallel_track", "cacq")}
        periods = ", ".join(f"{p:g}" for p in column(data, PERIOD, case="jisc", transition=self.transition))
        shown = {case: f"{case} / jisc: {', '.join(f'{r:.3f}' for r in found)}" for case, found in ratios.items()}
        pt, jisc = time["parallel_track"], time["jisc"]
        apart = float(abs(time["cacq"] / pt - 1).max())
        return (
            Claim("JISC achieves a higher throughput than both CACQ and PT at any frequency.", self.source).judged(
                all(bool((found > 1).all()) for found in ratios.values()),
                f"at periods {periods}: {shown['parallel_track']}; {shown['cacq']}",
                "not at every frequency",
            ),
            Claim("CACQ is not affected by the frequency.", self.source).judged(
                len(set(time["cacq"])) == 1, f"{time['cacq'][0]:g} operations at every period", "it is"
            ),
            Claim("PT achieves its worst performance when the rate of transitions is high.", self.source).judged(
                bool(pt[0] == pt.max()),
                f"{', '.join(f'{t:,.0f}' for t in pt)} operations at periods {periods}",
                "other periods cost more",
            ),
            Claim("JISC achieves lower throughput at high transition rates.", self.source).sized(
                bool(jisc[0] == jisc.max() and jisc[0] > jisc[-1]),
                bool(jisc[0] > VISIBLE * jisc[-1]),
                f"{', '.join(f'{t:,.0f}' for t in jisc)} operations at periods {periods}",
                "one key of one state is completed by one comparison, which is not to be seen",
            ),
            Claim("CACQ and PT have almost the same performance.", self.source).judged(
                apart < 0.15,
                f"they differ by up to {apart:.0%}",
                "CACQ visits all SteMs for every row at any time, PT has a second plan only for the 2W of a transition",
            ),
        )

    def of(self, data: pa.Table, case: str, transition: str = "") -> Numbers:
        """Look up a case's operations by period."""
        found: Numbers = column(data, OPERATIONS, case=case, transition=transition or self.transition)
        return found

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2)
        mine = data.filter(pa.array([found == self.transition for found in data.column(TRANSITION).to_pylist()]))
        lines(left, mine, PERIOD, OPERATIONS, marks=True)
        left.set_ylim(0)
        periods = column(mine, PERIOD, case="jisc")
        for other in ("parallel_track", "cacq"):
            ratio, drawn = self.of(data, other) / self.of(data, "jisc"), {"marker": mark_of(other), "color": ink(other)}
            right.plot(periods, ratio, label=f"{other} / jisc", **drawn)
        right.set_ylim(0, 2)
        right.set_xlabel(PERIOD)
        right.set_ylabel("ratio of operations")
        right.legend(frameon=False, fontsize="small")


class Jisc11(FrequencyFigure):
    """Every state is incomplete after every transition."""

    name: ClassVar[str] = "jisc_11"
    title: ClassVar[str] = "frequency of transitions, worst case"
    source: ClassVar[str] = "JISC §6.4, Fig. 11"
    transition: ClassVar[str] = WORST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return self.common(data)


class Jisc12(FrequencyFigure):
    """One state is incomplete after every transition, the one below the root."""

    name: ClassVar[str] = "jisc_12"
    title: ClassVar[str] = "frequency of transitions, best case"
    source: ClassVar[str] = "JISC §6.4, Fig. 12"
    transition: ClassVar[str] = BEST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rise = {t: (found := self.of(data, "jisc", t))[0] - found[-1] for t in (BEST, WORST)}
        slope = Claim("The slope of JISC's execution time is lower than in Fig. 11.", self.source)
        return (
            *self.common(data),
            slope.sized(
                rise[BEST] < rise[WORST],
                rise[BEST] * VISIBLE < rise[WORST],
                f"from the rarest to the most frequent transitions {rise[BEST]:,.0f} operations more, "
                f"in the worst case {rise[WORST]:,.0f}",
                "completing one state costs nearly as much as completing all",
            ),
        )
