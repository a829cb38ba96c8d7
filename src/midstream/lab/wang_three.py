"""Wang's first experiment (§8.2): three queries, three ways to share them, over rates, windows and selectivities."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.drawing import PANEL, RATE, draw_panels
from midstream.lab.figure import Canvas, Figure, Scale
from midstream.lab.wang_engine import Tally, tally
from midstream.lab.wang_operators import mem_opt, pull_up, push_down
from midstream.lab.wang_queries import RATES, RUN, THREE, WangSetting

MEM_OPT, PULL_UP, PUSH_DOWN = "mem_opt", "pull_up", "push_down"
RIVALS = (PULL_UP, PUSH_DOWN)

MIDDLE = 0.5


class OfThree(Figure, ABC):
    """A figure of this family: `drawn` over the rate, in `panels` by name: windows, S_sigma and S_join."""

    drawn: ClassVar[str]
    panels: ClassVar[Mapping[str, tuple[str, float, float]]]

    def runs(self, scale: Scale) -> Iterator[tuple[dict[str, Any], WangSetting]]:
        """Enumerate every setting, with its name in the data."""
        for panel, (windows, s_sigma, s_join) in self.panels.items():
            for rate in scale.pick(quick=(RATES[0], RATES[1], RATES[-1]), full=RATES):
                pace, run = scale.pick(quick=(0.5, 60.0), full=(1.0, RUN))
                yield {PANEL: panel, RATE: rate}, WangSetting(THREE[windows], rate, s_sigma, s_join, pace, run)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        draw_panels(canvas, data, self.panels, self.drawn)


def shared(setting: WangSetting) -> dict[str, tuple[Tally, Cost]]:
    """Compute what each way of sharing took, by its name."""
    runs = {case: tally(setting, case) for case in (MEM_OPT, PULL_UP, PUSH_DOWN)}
    costs = {
        MEM_OPT: mem_opt(runs[MEM_OPT], setting.filtered),
        PULL_UP: pull_up(runs[PULL_UP], setting.filtered),
        PUSH_DOWN: push_down(runs[PUSH_DOWN], setting.filtered),
    }
    return {case: (runs[case], cost) for case, cost in costs.items()}


def named(windows: str, s_sigma: float, s_join: float) -> str:
    """Name a panel.

    >>> named("Uniform", 0.5, 0.1)
    'Uniform, S_sigma 0.5, S_join 0.1'
    """
    return f"{windows}, S_sigma {s_sigma:g}, S_join {s_join:g}"
