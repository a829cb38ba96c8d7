"""What every operator of a plan offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from midstream.plan.signature import Signature
from midstream.state.combinations import Combinations
from midstream.state.lane import Lane
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class Operator(ABC):
    """A node of a compiled plan: a frozen value; what changes is in the `Lane` it is run on."""

    signature: Signature
    rows: Mapping[str, RowsSpec]

    @property
    @abstractmethod
    def id(self) -> str:
        """Equal ids do equal work, so a step does it once."""

    @abstractmethod
    def children(self) -> tuple[Operator, ...]:
        """The operators below."""

    @abstractmethod
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        """The join states this operator keeps itself, each with the operator whose output it holds."""

    @abstractmethod
    def advance(self, lane: Lane) -> Combinations:
        """The step's delta: every combination with at least one row of this step. Call through `delta`."""

    @abstractmethod
    def content(self, lane: Lane) -> Combinations:
        """Every living combination of old rows, from the states of the operators below (Zhu §4.1.2)."""

    @abstractmethod
    def describe(self) -> str:
        """The operator in a line."""

    def delta(self, lane: Lane) -> Combinations:
        """The step's delta, computed once a step however many plans share the operator."""
        if self.id not in lane.deltas:
            lane.deltas[self.id] = self.advance(lane)
        return lane.deltas[self.id]

    def walk(self) -> Iterator[Operator]:
        """This operator and all below it, children first."""
        for child in self.children():
            yield from child.walk()
        yield self
