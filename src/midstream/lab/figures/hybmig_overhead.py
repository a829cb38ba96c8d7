"""HybMig Figs. 17 to 20: peak memory and total comparisons of the migration phase over the parameters of Table 3."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import INK, bars, named
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_settings import CLIQUE, METHODS, RATES, SETTING, STREAMS, WINDOWS, HybMigTask, Machine
from midstream.lab.tidy import cases, column, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHAPES = ("right", "bushy")
MEMORY, CPU = "peak memory (rows)", "CPU (comparisons)"
MEASURES = (MEMORY, CPU)
WIDE = 1.5
"""The least ratio that is a wide margin; the paper's logarithmic axes show at least that."""
NAMES = {"moving_state": "MS", "parallel_track": "PT"}
REASONS = {
    "moving_state": (
        "where little is missing in the new plan, rebuilding it takes less than two plans; of four streams the bushy "
        "plan even shares its lowest join with the old one, contrary to §5.1"
    ),
    "parallel_track": (
        "Zhu's PT does not compare new with new at its root, while HybMig's new plan joins new rows at once with old "
        "ones, which still have the distribution that the old plan was made for"
    ),
}


class OverheadFigure(Figure):
    """A figure of this family: columns for the right-deep new plan, lines for the bushy one, logarithmic axes."""

    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track", "hybmig"})
    parameter: ClassVar[str]

    @abstractmethod
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        """List the values of the parameter, each with the changes it makes to the default task."""

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for value, changes in self.settings(scale):
            for shape in SHAPES:
                for case in METHODS:
                    phases = [
                        (task.method(case), task.start)
                        for seed in range(2)
                        for task in [HybMigTask(Machine.of(scale), shape=shape, seed=seed).at(**changes)]
                    ]
                    rows.append(
                        {
                            "case": case,
                            "new plan": shape,
                            self.parameter: value,
                            MEMORY: float(np.mean([trace.peak("state_rows", start) for trace, start in phases])),
                            CPU: float(np.mean([trace.total("comparisons", start) for trace, start in phases])),
                        }
                    )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return tuple(self._outperforms(data, measure, rival) for measure in MEASURES for rival in NAMES)

    def _outperforms(self, data: pa.Table, measure: str, rival: str) -> Verdict:
        # The ratios are rival to HybMig.
        ratios = self._ratios(data, measure, rival)
        lost = [f"{shape} {value:g} ({ratio:.2f})" for (shape, value), ratio in ratios.items() if ratio <= 1]
        close = [f"{shape} {value:g} ({ratio:.2f})" for (shape, value), ratio in ratios.items() if 1 < ratio < WIDE]
        shown = f"{rival} takes {_span(ratios)} times HybMig's {measure}"
        reason = f"not with the new plan {', '.join(lost or close)}"
        reason += f": {REASONS[rival]}" if lost else f", where a wide margin is a factor of {WIDE:g}"
        text = f"HybMig clearly outperforms {NAMES[rival]} by a wide margin under all settings: {measure}."
        return Claim(text, self.source).sized(not lost, not close, shown, reason)

    def _ratios(self, data: pa.Table, measure: str, rival: str) -> dict[tuple[str, float], float]:
        ratios = {}
        for shape in SHAPES:
            for value in cases(data, self.parameter):
                at = {"new plan": shape, self.parameter: value}
                ratios[shape, value] = self._one(data, measure, rival, at) / self._one(data, measure, "hybmig", at)
        return ratios

    def _one(self, data: pa.Table, measure: str, case: str, at: dict[str, Any]) -> float:
        return float(column(data, measure, case=case, **at)[0])

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, measure in zip(canvas.subplots(1, 2), MEASURES, strict=True):
            self._panel(axes, data, measure)

    def _panel(self, axes: Axes, data: pa.Table, measure: str) -> None:
        groups, names = cases(data, self.parameter), list(METHODS)
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


def _span(ratios: dict[tuple[str, float], float]) -> str:
    return f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}"


class HybMig17(OverheadFigure):
    """Peak memory and comparisons over w, tau = 1 and n = 6."""

    name: ClassVar[str] = "hybmig_17"
    title: ClassVar[str] = "overhead over w"
    source: ClassVar[str] = "HybMig §5.1, Fig. 17"
    setting: ClassVar[str] = f"{SETTING} tau = 1 and n = 6; the window size varies as in Table 3."
    parameter: ClassVar[str] = "w (minutes)"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"window": value}) for value in scale.pick(quick=WINDOWS[1:3], full=WINDOWS)]


class HybMig18(OverheadFigure):
    """Peak memory and comparisons over tau, w = 3 and n = 6."""

    name: ClassVar[str] = "hybmig_18"
    title: ClassVar[str] = "overhead over tau"
    source: ClassVar[str] = "HybMig §5.1, Fig. 18"
    setting: ClassVar[str] = f"{SETTING} w = 3 and n = 6; the stream rate varies as in Table 3."
    parameter: ClassVar[str] = "tau (rows a second)"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"rate": value}) for value in scale.pick(quick=RATES[1:3], full=RATES)]


class HybMig19(OverheadFigure):
    """Peak memory and comparisons over n, w = 3 and tau = 1."""

    name: ClassVar[str] = "hybmig_19"
    title: ClassVar[str] = "overhead over n"
    source: ClassVar[str] = "HybMig §5.1, Fig. 19"
    setting: ClassVar[str] = f"{SETTING} w = 3 and tau = 1; the number of streams varies as in Table 3."
    parameter: ClassVar[str] = "n"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"streams": value}) for value in scale.pick(quick=STREAMS[:3], full=STREAMS)]


SOURCE = "HybMig §5.2, Fig. 20"
FACTOR = Claim("Sharing improves performance up to a factor of 2.", SOURCE)

DOMAIN = 180
PLAIN, SHARED = "hybmig without sharing", "hybmig with sharing"


class HybMig20(Figure):
    """Peak memory and comparisons of HybMig with and without decomposition, over n."""

    name: ClassVar[str] = "hybmig_20"
    title: ClassVar[str] = "effect of sharing"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"hybmig"})
    setting: ClassVar[str] = (
        f"{CLIQUE} From the left-deep plan to the one that joins its last two streams first. A window holds the "
        f"paper's 180 rows and the common domain {DOMAIN} keys: where a join multiplies its input, the topmost joins, "
        "which cannot be shared, do most of the work."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        machine = replace(Machine.smooth(scale), domain=DOMAIN)
        for streams in STREAMS:
            task = HybMigTask(machine, streams=streams, shape="sharing", ticks=scale.pick(quick=18, full=36))
            for case, decompose in ((PLAIN, False), (SHARED, True)):
                trace = task.play("hybmig", {"decompose": decompose})
                rows.append(
                    {
                        "case": case,
                        "n": streams,
                        MEMORY: trace.peak("state_rows", task.start),
                        CPU: trace.total("comparisons", task.start),
                    }
                )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        ratios = {m: column(data, m, case=PLAIN) / column(data, m, case=SHARED) for m in MEASURES}
        every = np.concatenate(list(ratios.values()))
        shown = "; ".join(f"{m}: {', '.join(f'{r:.2f}' for r in found)}" for m, found in ratios.items())
        return (
            FACTOR.judged(
                bool(every.min() >= 1 and 1.5 <= every.max() <= 2.2),
                f"without sharing / with sharing, by n = {', '.join(map(str, column(data, 'n', case=PLAIN)))}: {shown}",
                "what is shared is computed once instead of twice, but most of the work is above it"
                if every.max() < 1.5
                else "the more streams are shared, the more is spared: the lower plan's state is not even kept twice",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, measure in zip(canvas.subplots(1, 2), MEASURES, strict=True):
            bars(axes, data, "n", measure)
            axes.set_yscale("log")
