"""HybMig Figs. 17 to 19: peak memory and total comparisons of the migration phase over one parameter of Table 3."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import INK, named
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_settings import METHODS, Machine, Task
from midstream.lab.tidy import cases, column, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

SHAPES = ("right", "bushy")
MEMORY, CPU = "peak memory (rows)", "CPU (comparisons)"
MEASURES = (MEMORY, CPU)


class OverheadFigure(Figure):
    """A figure of this family: columns for the right-deep new plan, lines for the bushy one, logarithmic axes."""

    paper: ClassVar[str] = "HybMig"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track", "hybmig"})
    parameter: ClassVar[str]

    @abstractmethod
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        """The values of the parameter, each with the changes it makes to the default task."""

    @property
    def wide(self) -> Claim:
        """The claim all three figures make."""
        return Claim("HybMig clearly outperforms MS and PT by a wide margin under all settings.", self.source)

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for value, changes in self.settings(scale):
            for shape in SHAPES:
                task = Task(Machine.of(scale), shape=shape).at(**changes)
                for case in METHODS:
                    trace = task.method(case)
                    rows.append(
                        {
                            "case": case,
                            "new plan": shape,
                            self.parameter: value,
                            MEMORY: int(trace.peak("state_rows", task.start)),
                            CPU: int(trace.total("comparisons", task.start)),
                        }
                    )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return (self._outperforms(data, MEMORY), self._outperforms(data, CPU))

    def _outperforms(self, data: pa.Table, measure: str) -> Verdict:
        """HybMig against each rival at every setting; the ratios are rival to HybMig."""
        worst, told, lost = float("inf"), [], []
        for rival in ("moving_state", "parallel_track"):
            ratios = []
            for shape in SHAPES:
                for value in cases(data, self.parameter):
                    at = {"new plan": shape, self.parameter: value}
                    ratio = self._one(data, measure, rival, at) / self._one(data, measure, "hybmig", at)
                    ratios.append(ratio)
                    if ratio <= 1:
                        lost.append(f"{rival} {shape} {value:g} ({ratio:.2f})")
            told.append(f"{rival} takes {min(ratios):.2f} to {max(ratios):.2f} times as much as hybmig")
            worst = min(worst, min(ratios))
        claim = Claim(f"{self.wide.text} [{measure}]", self.wide.source)
        return claim.judged(worst > 1, f"{measure}: {'; '.join(told)}", self.reason(measure, lost))

    def reason(self, measure: str, lost: Sequence[str]) -> str:
        """Why HybMig loses where it does."""
        return f"not at: {', '.join(lost)}"

    def _one(self, data: pa.Table, measure: str, case: str, at: dict[str, Any]) -> float:
        return float(column(data, measure, case=case, **at)[0])

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, measure in zip(canvas.subplots(1, 2), MEASURES, strict=True):
            self._panel(axes, data, measure)

    def _panel(self, axes: Axes, data: pa.Table, measure: str) -> None:
        groups, names = cases(data, self.parameter), cases(data, "case")
        width = 0.8 / len(names)
        for number, name in enumerate(names):
            places = [at + (number - (len(names) - 1) / 2) * width for at in range(len(groups))]
            columns = column(data, measure, **{"case": name, "new plan": "right"})
            axes.bar(places, columns, width, label=name, color=INK.get(name))
            points = column(data, measure, **{"case": name, "new plan": "bushy"})
            axes.plot(places, points, color=INK.get(name), marker="o", markersize=4, markeredgecolor="black")
        axes.set_yscale("log")
        axes.set_xticks(range(len(groups)), [f"{group:g}" for group in groups])
        named(axes, self.parameter, measure)
