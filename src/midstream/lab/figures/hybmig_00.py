"""HybMig §2.3: what M-Join saves at a migration and pays afterwards. The paper argues it without a figure."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.virtual_processor import PlanSwitch, Processor
from midstream.lab.zhu import OLD, SPEED, set_1

SOURCE = "HybMig §2.3"
FREE = Claim("Plan migration simply means changing the orderings without any additional cost.", SOURCE)
REPEATED = Claim("No intermediate results are stored and work must be repeated.", SOURCE)
LESS = Claim("M-Join requires less memory.", SOURCE)

ORDERS = ("[A: B C D | B: A C D | C: B A D | D: C B A]", "[A: B C D | B: C D A | C: D B A | D: C B A]")
"""Two sets of probing orders along the chain of predicates."""

SETTING = set_1(3000)
TIME, COMPARED, MEMORY = "time (s)", "comparisons a second", "rows in states"
FIRST, SECOND, END = 7.0, 13.0, 19.0
TREE, M_JOIN, STAGES = "old", "m_join", "comparisons of the migrations"


class HybMig00(Figure):
    """Work and memory of the tree, and of the same query carried to M-Join and then to other orders."""

    name: ClassVar[str] = "hybmig_00"
    title: ClassVar[str] = "M-Join instead of a tree"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"m_join"})
    setting: ClassVar[str] = (
        "Zhu's query, Table 2 set 1 with W = 3000 ms. Once the tree (((A B) C) D) throughout; once carried to M-Join "
        f"at {FIRST:.0f} s, and to other orders at {SECOND:.0f} s; a row of each stream begins with a stream that it "
        "has a predicate with. The paper argues this without a figure."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        processor = Processor(SPEED, tick=scale.pick(quick=0.25, full=0.1))
        switches = [PlanSwitch(at, orders, "m_join") for at, orders in zip((FIRST, SECOND), ORDERS, strict=True)]
        rows = []
        for case, chosen in ((TREE, []), (M_JOIN, switches)):
            trace = processor.play(SETTING.workload(), OLD, END, chosen)
            cost = " and ".join(str(stage.comparisons) for stage in trace.stages) or "none"
            seconds, compared = trace.rate(1.0, END, "comparisons")
            held = trace.level("state_rows", seconds)
            rows += [
                {"case": case, TIME: float(at), COMPARED: float(rate), MEMORY: int(count), STAGES: cost}
                for at, rate, count in zip(seconds, compared, held, strict=True)
            ]
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        # A window after the migration all old states are forgotten.
        settled = column(data, TIME, case=TREE) > FIRST + SETTING.seconds
        compared, memory = (
            {case: float(column(data, name, case=case)[settled].mean()) for case in (TREE, M_JOIN)}
            for name in (COMPARED, MEMORY)
        )
        cost = str(column(data, STAGES, case=M_JOIN)[0])
        return (
            FREE.judged(cost == "0 and 0", f"the two migrations took {cost} comparisons", "states were computed"),
            REPEATED.judged(
                compared[M_JOIN] > 1.1 * compared[TREE],
                f"M-Join compares {compared[M_JOIN]:,.0f} pairs a second, the tree {compared[TREE]:,.0f}",
                "work is repeated, but every input has an order of its own: a row of D meets the rows of C first, and "
                "their selective predicate leaves few to go on with, while the tree compares it with every ABC",
            ),
            LESS.judged(
                memory[M_JOIN] < memory[TREE],
                f"M-Join holds {memory[M_JOIN]:,.0f} rows, the tree {memory[TREE]:,.0f}",
                "intermediate states are smaller than base states",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, name in zip(canvas.subplots(1, 2), (COMPARED, MEMORY), strict=True):
            lines(axes, data, TIME, name)
            mark(axes, FIRST, "to M-Join")
            mark(axes, SECOND, "other orders")
