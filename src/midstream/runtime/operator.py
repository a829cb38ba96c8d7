"""What every operator of a plan offers, and the views that a migration runs some of them in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Self

from midstream.model.errors import cause_of, located
from midstream.model.ids import OperatorId, StateId
from midstream.plan.signature import Signature, ViewName
from midstream.runtime.distribution import Distribution
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, empty
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class View:
    """Which operators and states of a plan stand apart, by their sets of sources, and under what name.

    Base rows are never in a view: they are stored once, for every plan.
    """

    name: ViewName
    operators: frozenset[frozenset[str]]
    states: frozenset[frozenset[str]]

    def state(self, spec: StateSpec) -> StateSpec:
        """Return the state under its name in the view."""
        if frozenset(spec.labels) not in self.states:
            return spec
        return replace(spec, signature=spec.signature.within(self.name))

    def covers(self, labels: frozenset[str]) -> bool:
        """Return whether the operator over these sources belongs to the view."""
        return labels in self.operators


@dataclass(frozen=True)
class Operator(ABC):
    """A node of a compiled plan: a frozen value; what changes is in the `Lane` it is run on."""

    signature: Signature
    rows: Mapping[str, RowsSpec]

    rests: ClassVar[bool] = False
    """Whether it, in a step that brings it nothing, does nothing, counts nothing and leaves its states as they are."""

    @property
    @abstractmethod
    def id(self) -> OperatorId:
        """The operator's id; equal ids do equal work, so a step does it once."""

    @property
    def counted(self) -> tuple[OperatorId, ...]:
        """The ids of the operator's counters."""
        return (self.id,)

    @abstractmethod
    def children(self) -> tuple[Operator, ...]:
        """Return the operators below."""

    @cached_property
    def labels(self) -> frozenset[str]:
        """The sources below, including the operator's own."""
        return frozenset[str]().union(*(child.labels for child in self.children()))

    @property
    def input(self) -> str | None:
        """The lane's input whose rows the operator takes; None where it takes the deltas of others."""
        return None

    @cached_property
    def nothing(self) -> Combinations:
        """The delta of a step that brings the operator nothing."""
        spec = self.rows[min(self.labels)]
        return empty(sorted(self.labels), spec.clocks)

    def inputs(self) -> tuple[Operator, ...]:
        """Return the operators whose deltas it takes: the children, except while a migration is under way."""
        return self.children()

    def target(self) -> Operator:
        """Return the operator that will take this place: itself, except while a migration is under way."""
        return self

    def with_children(self, children: Sequence[Operator]) -> Operator:
        """Replace the children by others of equal sources in equal order; leaves stay as they are."""
        return self

    @classmethod
    def like(cls, other: Operator) -> Self:
        """Build an operator of this class with every field of another, of a class that this one extends unchanged."""
        return cls(**{field.name: getattr(other, field.name) for field in fields(other)})

    def in_view(self, view: View) -> Self:
        """Move the operator, and those below it that the view covers, to the view's states."""
        return self

    def tables(self) -> tuple[StateId, ...]:
        """Return the ids of the lane tables that the operator keeps besides its states."""
        return ()

    def distribution(self) -> Distribution:
        """Return which rows of its inputs must lie in one lane; none where each row is looked at by itself."""
        return Distribution()

    @abstractmethod
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        """Return the join states that the operator keeps, each with the operator whose output it holds."""

    @abstractmethod
    def advance(self, lane: Lane) -> Combinations:
        """Compute the step's delta: every combination with at least one row of this step. Call this through `delta`."""

    @abstractmethod
    def content(self, lane: Lane) -> Combinations:
        """Compute every living combination of old rows from the states of the operators below (Zhu §4.1.2)."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the operator in a line."""

    def title(self) -> str:
        """Name the operator for readers who know SQL only; its description unless it has plainer words."""
        return self.describe()

    def delta(self, lane: Lane) -> Combinations:
        """Return the step's delta, computed once a step however many plans share the operator."""
        found = lane.deltas.get(self.id)
        if found is None:
            try:
                found = self.advance(lane)
            except Exception as fault:
                raise located(fault, self.describe) from cause_of(fault)
            lane.deltas[self.id] = found
        return found

    def walk(self) -> tuple[Operator, ...]:
        """Walk this operator and all below it, children first, each once."""
        return self._below

    @cached_property
    def _below(self) -> tuple[Operator, ...]:
        below = {id(operator): operator for child in self.children() for operator in child.walk()}
        return (*below.values(), self)

    @cached_property
    def states_below(self) -> tuple[tuple[Operator, StateSpec], ...]:
        """The states of this operator and of all below it, children first."""
        return tuple(state for operator in self.walk() for state in operator.states())

    def drive(self, lane: Lane) -> Combinations:
        """Compute the step's delta, with every operator below advanced.

        An operator that another plan has advanced already does not ask its children, whose states must yet go on.
        """
        if lane.dirty.rests:
            return self._driven(lane)
        for operator in self.inputs():
            operator.drive(lane)
        return self.delta(lane)

    def _driven(self, lane: Lane) -> Combinations:
        # No migration is under way here: an operator that is brought nothing need not be asked.
        deltas, silent = lane.deltas, lane.dirty.silent
        for operator, source, children in self._in_turn:
            if source in silent:
                deltas[operator.id] = operator.nothing
                continue
            for child in children:
                if deltas[child].count:
                    break
            else:
                if children:
                    deltas[operator.id] = operator.nothing
                    continue
            operator.delta(lane)
        return deltas[self.id]

    @cached_property
    def _in_turn(self) -> tuple[tuple[Operator, str | None, tuple[OperatorId, ...]], ...]:
        # Children first, with the input that a leaf takes and the ids of the children.
        return tuple((one, one.input, tuple(child.id for child in one.children())) for one in self.walk())
