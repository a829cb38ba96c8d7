"""How far estimates are from the truth: q-errors, and how often the truth lies within the bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.estimates.shapes import Shape
from benchmarks.estimates.truth import Truth
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.samples import Samples

MOST_MEDIAN, MOST_95 = 1.3, 3.0
"""What must be reached."""


@dataclass(frozen=True)
class Errors:
    """The q-errors of some estimates, and for how many of them the truth lies within the bounds."""

    found: tuple[float, ...]
    within: int

    @property
    def median(self) -> float:
        """The q-error that half of the estimates do not exceed."""
        return float(np.median(self.found))

    @property
    def most_of_95(self) -> float:
        """The q-error that 95 of 100 estimates do not exceed."""
        return float(np.percentile(self.found, 95))

    @property
    def reached(self) -> bool:
        """Whether they are as good as they must be."""
        return self.median <= MOST_MEDIAN and self.most_of_95 <= MOST_95

    @staticmethod
    def of(pairs: Iterable[tuple[Bounded, float]]) -> Errors:
        """Of estimates beside the truth; sizes below one row count as one."""
        found: list[float] = []
        within = 0
        for estimate, true in pairs:
            one, other = max(estimate.value, 1.0), max(true, 1.0)
            found.append(max(one / other, other / one))
            within += estimate.low <= true <= estimate.high
        return Errors(tuple(found), within)

    @staticmethod
    def all(several: Sequence[Errors]) -> Errors:
        """All of them together."""
        return Errors(tuple(q for one in several for q in one.found), sum(one.within for one in several))


def errors(shape: Shape, samples: Samples, truth: Truth) -> Errors:
    """Of every set of streams that conditions hold together."""
    return Errors.of((samples.rows(subset), truth.size(shape, subset)) for subset in shape.subsets())
