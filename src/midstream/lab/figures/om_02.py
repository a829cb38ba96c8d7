"""OM Fig. 2 and §3.2: two plans of two operators, and which of them is better depends on what counts."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.optimizer.cost.om import OmOperator, OmWeights, Queueing, pipeline_cost

MEMORY = Claim("The memory utilization of plan 2 is less than that of plan 1; the output rate of plan 1 is higher.",
               "OM §1.2, Fig. 2")  # fmt: skip
EXAMPLE = Claim("Cost of p1 and p2: 697.52 and 517.54 with w_r = 0.1, w_m = 0.9; 5550 and 9150 with 20000 and 2.",
                "OM §3.2")  # fmt: skip
SECTIONS = Claim("The cost functions of §4.1 give C_r and C_m of the example, to be substituted in the weighted cost.",
                 "OM §4.1")  # fmt: skip

O_1, O_2 = OmOperator("o_1", sel=0.5, tpr=500), OmOperator("o_2", sel=0.1, tpr=50)
PLANS = {"plan 1": (O_1, O_2), "plan 2": (O_2, O_1)}
ASSIGNMENTS = {"0.1, 0.9": OmWeights(0.1, 0.9), "20000, 2": OmWeights(20_000, 2)}
PRINTED = {("plan 1", "0.1, 0.9"): 697.52, ("plan 2", "0.1, 0.9"): 517.54,
           ("plan 1", "20000, 2"): 5550.0, ("plan 2", "20000, 2"): 9150.0}  # fmt: skip
LAMBDA, W = 500.0, 1.0

WEIGHTS, COST, C_R, C_M, COUNTED = "w_r, w_m", "cost", "C_r", "C_m", "counted as in"


class Om02(Figure):
    """The weighted cost of both plans, by two assignments of weights."""

    name: ClassVar[str] = "om_02"
    title: ClassVar[str] = "two plans, two assignments of weights"
    source: ClassVar[str] = "OM §1.2, Fig. 2 and §3.2"
    setting: ClassVar[str] = (
        "From the cost functions: selectivities 0.5 and 0.1, processing rates 500 and 50 rows a second. Arrival rate "
        "and window are not in the paper; the numbers printed are those of 500 rows a second, a window of one second."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        return table(
            {
                "case": plan,
                WEIGHTS: name,
                COUNTED: way.value,
                C_R: cost.c_r,
                C_M: cost.c_m,
                COST: cost.weighted(weights),
            }
            for way in Queueing
            for plan, operators in PLANS.items()
            for name, weights in ASSIGNMENTS.items()
            for cost in [pipeline_cost(operators, LAMBDA, W, way)]
        )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        found = {key: self._only(data, COST, *key, Queueing.EXAMPLE) for key in PRINTED}
        rates, memory = (
            {plan: self._only(data, name, plan, "0.1, 0.9", Queueing.EXAMPLE) for plan in PLANS} for name in (C_R, C_M)
        )
        formulas = {plan: self._only(data, C_M, plan, "0.1, 0.9", Queueing.SECTION_4_1) for plan in PLANS}
        return (
            MEMORY.judged(
                memory["plan 2"] < memory["plan 1"] and rates["plan 1"] > rates["plan 2"],
                f"C_m {memory['plan 1']:g} and {memory['plan 2']:g}, C_r {rates['plan 1']:g} and {rates['plan 2']:g}",
                "it is the other way round",
            ),
            EXAMPLE.judged(
                all(abs(found[key] - printed) < 0.005 for key, printed in PRINTED.items()),
                ", ".join(f"{plan} with {weights}: {cost:.2f}" for (plan, weights), cost in found.items()),
                "other numbers come out",
            ),
            SECTIONS.judged(
                formulas == memory,
                f"by §4.1 C_m is {formulas['plan 1']:g} and {formulas['plan 2']:g}",
                "the example counts the input of a window and what each operator lets through, and bounds output rates "
                "by what an operator can process; §4.1 lets the input queue before a slow operator and bounds nothing",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        ours = data.filter(
            pa.array([way == Queueing.EXAMPLE.value for way in map(str, data.column(COUNTED).to_pylist())])
        )
        for axes, weights in zip(canvas.subplots(1, 2), ASSIGNMENTS, strict=True):
            chosen = ours.filter(pa.array([name == weights for name in ours.column(WEIGHTS).to_pylist()]))
            bars(axes, chosen, WEIGHTS, COST)

    @staticmethod
    def _only(data: pa.Table, name: str, plan: str, weights: str, way: Queueing) -> float:
        ways = [str(found) == way.value for found in data.column(COUNTED).to_pylist()]
        return float(column(data.filter(pa.array(ways)), name, case=plan, **{WEIGHTS: weights})[0])
