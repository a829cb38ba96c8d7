"""What a figure is: data measured on the engine, a picture of it, and the paper's claims judged by it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

import pyarrow as pa

import midstream.lab.figures as room
from midstream.model.discovery import OpenSet

if TYPE_CHECKING:
    import matplotlib.figure

Canvas: TypeAlias = "matplotlib.figure.Figure"
"""An empty matplotlib figure. matplotlib is loaded by what draws."""

T = TypeVar("T")


class Scale(Enum):
    """How much of a figure's ranges is measured: `quick` in seconds, `full` nearer to the paper.

    >>> Scale("quick").pick(quick=100, full=10_000)
    100
    """

    QUICK = "quick"
    FULL = "full"

    def pick(self, quick: T, full: T) -> T:
        """Choose the setting of this scale."""
        return quick if self is Scale.QUICK else full


@dataclass(frozen=True)
class Claim:
    """What a paper says of its figure, and where: `Claim("T_PT is 2W", "Zhu §6.2, Fig. 9")`."""

    text: str
    source: str

    def holds(self, numbers: str) -> Verdict:
        """Judge that the data supports the claim; `numbers` says by how much."""
        return Verdict(self, Judgement.HOLDS, numbers, "")

    def fails(self, numbers: str, reason: str) -> Verdict:
        """Judge that the data contradicts the claim: a finding, with the numbers and the reason."""
        return Verdict(self, Judgement.FAILS, numbers, reason)

    def partly(self, numbers: str, reason: str) -> Verdict:
        """Judge that the data agree in direction and not in size; `numbers` has both."""
        return Verdict(self, Judgement.DIRECTION, numbers, reason)

    def untested(self, numbers: str, reason: str) -> Verdict:
        """Judge that the set-up can neither support nor refute the claim, for a reason of ours."""
        return Verdict(self, Judgement.UNTESTED, numbers, reason)

    def judged(self, holds: bool, numbers: str, reason: str) -> Verdict:
        """Judge the claim by a check on the data; the reason is kept only where the claim does not hold."""
        return self.holds(numbers) if holds else self.fails(numbers, reason)

    def sized(self, direction: bool, size: bool, numbers: str, reason: str) -> Verdict:
        """Judge the claim by two checks on the data: direction, and size."""
        if direction and not size:
            return self.partly(numbers, reason)
        return self.judged(direction, numbers, reason)


class Judgement(Enum):
    """What is found of a claim."""

    HOLDS = "holds"
    DIRECTION = "holds in direction, not in size"
    FAILS = "does not hold"
    UNTESTED = "not put to the test here"


@dataclass(frozen=True)
class Verdict:
    """A claim against the data: what is found, the `numbers` it rests on, and the `reason` where it does not hold.

    >>> Claim("T_PT is 2W", "Zhu §6.2, Fig. 9").judged(True, "2.01 W to 2.03 W", "purging is lazy").reason
    ''
    """

    claim: Claim
    finding: Judgement
    numbers: str
    reason: str

    @property
    def holds(self) -> bool:
        """Whether the claim holds, in direction and in size."""
        return self.finding is Judgement.HOLDS

    def __post_init__(self) -> None:
        if not self.holds and not self.reason:
            raise ValueError(f"a claim that does not hold needs a reason: {self.claim.text}")


class Figure(ABC):
    """A figure of a paper; one class in `lab/figures` each, found by discovery.

    `name` is the paper's first author and the number (`zhu_09`), `title` what is drawn, `source` the paper's short name
    and the place in it. `setting` says in a paragraph what was run, and what differs from the paper and why.
    `strategies` are those whose figure it is: every strategy has at least one. `schemes` are the ways of sharing that
    it compares, `policies` those of the optimizer, `spreadings` those of a ring: every one has a figure too.
    A figure that is measured `on_spark` is left out of a run of all figures where Spark is not installed.

    `measure` is deterministic: equal scale, equal table. Judging and drawing read nothing but that table, so that
    verdict and picture can be made again from the CSV.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    setting: ClassVar[str]
    strategies: ClassVar[frozenset[str]] = frozenset()
    schemes: ClassVar[frozenset[str]] = frozenset()
    policies: ClassVar[frozenset[str]] = frozenset()
    spreadings: ClassVar[frozenset[str]] = frozenset()
    on_spark: ClassVar[bool] = False

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return self.source.split()[0]

    @abstractmethod
    def measure(self, scale: Scale) -> pa.Table:
        """Run the engine and give tidy data: one row per observation, one column per variable."""

    @abstractmethod
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        """Check every claim that the paper's text makes of the figure against the data."""

    @abstractmethod
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        """Draw the data onto an empty matplotlib figure, with the paper's axes."""


_SET = OpenSet(room, Figure, "midstream.figures", "unknown figure", place="lab")
figures, figure = _SET.all, _SET.named
