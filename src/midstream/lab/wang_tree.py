"""Wang Figs. 6.4 to 6.7: state-slice over a tree of joins, by the printed closed forms and by the equations in full."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.join_tree import JoinTree, scaled
from midstream.lab.figure import Scale
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import Map, middles

TABLE_6_2 = "Table 6.2, in full"
"""The case of one point: the values of the text's worked numbers."""


SIGNIFICANT = 0.1
"""A saving of CPU that may be called significant."""


class OfTree(Map):
    """A figure of this family: `printed` and `in_full` over the ratios m and n, and the worked example's saving."""

    x: ClassVar[str] = "m = W_AB^1 / W_AB^2"
    y: ClassVar[str] = "n = W_BC^2 / W_BC^1"
    printed: ClassVar[str]
    in_full: ClassVar[str]
    setting: ClassVar[str] = (
        "From the equations with the values of Table 6.2, no engine: two queries over (A join B) join C, the one with "
        "the wider window below, the other above. The text has W_BC^1 = n 30 and W_BC^2 = 60, of which n is not the "
        "ratio; W_BC^1 = 30 and W_BC^2 = n 30 are meant. Left the closed form that the figure was drawn from, right "
        "the chapter's own equations without anything dropped. Averages are over 0 < m, n < 1."
    )

    @abstractmethod
    def ratios(self, t: JoinTree, m: float, n: float) -> dict[str, float]:
        """Compute state-slice over its rival at these windows, case by case."""

    @override
    def measure(self, scale: Scale) -> pa.Table:
        places = [*middles(scale), 1.0]
        points = [(m, n) for m in places for n in places]
        rows = [
            {"case": case, self.x: m, self.y: n, self.saved: 1 - ratio}
            for m, n in points
            for case, ratio in self.ratios(scaled(m, n), m, n).items()
        ]
        rows.sort(key=lambda row: self.panels.index(str(row["case"])))
        m, n = 1 / 60, 1 / 2
        worked = self.ratios(scaled(m, n), m, n)[self.in_full]
        return table([*rows, {"case": TABLE_6_2, self.x: m, self.y: n, self.saved: 1 - worked}])

    def worked(self, data: pa.Table) -> float:
        """Compute the saving of state-slice over its rival in the text's example."""
        return 1 - float(column(data, self.saved, case=TABLE_6_2)[0])
