"""Where a stream has been on a chart, and what that was worth: moves, switches, hits (OM §4.5, Algorithm 2; §5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from midstream.optimizer.charts.chart import Chart, Region


@dataclass(frozen=True)
class ChartCourse:
    """The rounds so far.

    A *move* is a round in another region than the round before, a *switch* one with another plan, a *hit* one whose
    plan was the best one there was, as far as that was judged afterwards: `judged` rounds. `visits` has for regions, by
    their number, how many rounds were spent there; `here` is the region of the last round.
    """

    rounds: int = 0
    moves: int = 0
    switches: int = 0
    hits: int = 0
    judged: int = 0
    here: Region = ()
    plan: str = ""
    visits: dict[str, int] = field(default_factory=dict)

    @property
    def fidelity(self) -> float:
        """The share of rounds that ran the best plan; 1 where none was judged yet."""
        return self.hits / self.judged if self.judged else 1.0

    def to(self, chart: Chart, point: Sequence[float], plan: str | None = None) -> ChartCourse:
        """Add a round, scheduled by what the stream is estimated to be like.

        The plan is that of the region's centroid, as in the paper, unless another one is given.

        >>> from midstream.optimizer.charts.chart import Axis
        >>> chart = Chart((Axis("rate", "A", 0, 10),), 2, ("few", "many"), (0, 1))
        >>> course = ChartCourse().to(chart, [1.0]).to(chart, [2.0]).to(chart, [9.0])
        >>> course.plan, course.moves, course.switches, course.visits
        ('many', 1, 1, {'0': 2, '1': 1})
        """
        here = chart.region(point)
        run, number = plan or chart.plan(here), str(chart.number(here))
        return replace(
            self,
            rounds=self.rounds + 1,
            moves=self.moves + (self.rounds > 0 and here != self.here),
            switches=self.switches + (self.rounds > 0 and run != self.plan),
            here=here,
            plan=run,
            visits={**self.visits, number: self.visits.get(number, 0) + 1},
        )

    def against(self, best: str) -> ChartCourse:
        """Judge the last round by the plan that turned out to be the best one.

        >>> ChartCourse(plan="a").against("a").against("b").fidelity
        0.5
        """
        return replace(self, hits=self.hits + (self.plan == best), judged=self.judged + 1)
