"""JISC Fig. 9: overhead during normal operation."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.jisc_settings import STREAMS, JoinChain, switch
from midstream.lab.tidy import column, table

SOURCE = "JISC §6.2, Fig. 9"
MINIMAL = Claim("JISC introduces minimal overhead to the symmetric hash join plan (under 3 %).", SOURCE)
TWICE = Claim("JISC is nearly twice as fast as CACQ.", SOURCE)

ROWS, OPERATIONS, COMPARISONS = "rows processed", "operations", "comparisons"
PLAIN = "symmetric hash join"
BEFORE, AFTER, POINTS = 2.0, 2.0, 8
"""Windows until the transition is over and forgotten, and windows measured from then on, at so many points."""


class Jisc09(Figure):
    """Execution time over the rows processed, 20 joins, all states complete."""

    name: ClassVar[str] = "jisc_09"
    title: ClassVar[str] = "normal operation"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc", "cacq"})
    setting: ClassVar[str] = (
        f"{STREAMS} 20 joins, windows of 40 rows, 8 steps (full: 200, 40). JISC's query has gone through the worst "
        "transition and its states are complete again; the plain plan never was another. Execution time is operations: "
        "pairs compared, rows that enter an operator, hops."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        chain = scale.pick(quick=JoinChain(20, 40, steps=8), full=JoinChain(20, 200, steps=40))
        transition = switch(chain.seconds, chain.worst, "jisc")
        runs = {
            "jisc": chain.play(chain.old, BEFORE + AFTER, [transition]),
            PLAIN: chain.play(chain.worst, BEFORE + AFTER),
            "cacq": chain.play(chain.eddy, BEFORE + AFTER),
        }
        since = BEFORE * chain.seconds
        rows = []
        for case, trace in runs.items():
            for at in range(1, POINTS + 1):
                until = since + at * AFTER / POINTS * chain.seconds + 1e-9
                rows.append(
                    {
                        "case": case,
                        ROWS: trace.total("rows", since, until),
                        OPERATIONS: trace.total("work", since, until),
                        COMPARISONS: trace.total("comparisons", since, until),
                    }
                )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        last = {
            (case, measure): float(column(data, measure, case=case)[-1])
            for case in ("jisc", PLAIN, "cacq")
            for measure in (OPERATIONS, COMPARISONS)
        }
        overhead = max(last["jisc", m] / last[PLAIN, m] - 1 for m in (OPERATIONS, COMPARISONS))
        faster = last["cacq", OPERATIONS] / last["jisc", OPERATIONS]
        return (
            MINIMAL.judged(
                overhead < 0.03,
                f"{last['jisc', OPERATIONS]:g} operations against {last[PLAIN, OPERATIONS]:g}: {overhead:.2%} more",
                "something of the transition is left",
            ),
            TWICE.sized(
                faster > 1.5,
                faster < 2.5,
                f"CACQ takes {faster:.2f} times JISC's operations, "
                f"{last['cacq', COMPARISONS] / last['jisc', COMPARISONS]:.2f} times its comparisons",
                "routing costs more than that" if faster > 1.5 else "routing costs less than that",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        lines(canvas.subplots(), data, ROWS, OPERATIONS, marks=True)
