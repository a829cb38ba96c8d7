"""Boxes: whatever runs a query's plan, a plan by itself or migrations under way (Zhu §1: the box to migrate).

To its surroundings a migration under way is nothing else than a plan, so one may begin while another runs: the running
one is its old box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from typing_extensions import override

from midstream.model.ids import OperatorId
from midstream.plan.tree import Plan
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations


class Box(ABC):
    """Anything that takes a step's rows and gives the step's results."""

    @property
    @abstractmethod
    def results(self) -> tuple[Operator, ...]:
        """The operators whose output is the query's result, for computing it again."""

    @abstractmethod
    def operators(self) -> tuple[Operator, ...]:
        """Return the roots of all operators that the box runs, old and new."""

    @abstractmethod
    def advance(self, lane: Lane) -> tuple[Combinations, ...]:
        """Compute the step's delta of each root of the query, each result exactly once."""

    def withheld(self, lane: Lane) -> Combinations | None:
        """Return results of this step that must not be delivered yet, after `advance`; None if nothing is held back."""
        return None

    @abstractmethod
    def snapshot(self) -> Mapping[str, Any]:
        """Encode the box as JSON values; its chunks are listed with the lane's states."""

    def settled(self, lane: Lane) -> Box:
        """Return the box to go on with after each step: another one once a migration is done."""
        return self

    @property
    @abstractmethod
    def target(self) -> PlanBox:
        """The plan by itself, to which every migration under way leads."""

    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        """Report by mark what each migration under way did in this step and its progress, as JSON values."""
        return {}


@dataclass(frozen=True)
class PlanBox(Box):
    """A plan by itself: `plan` over the labels of its operators, `notation` as the query's user writes it."""

    plan: Plan
    notation: str
    roots: tuple[Operator, ...]

    @override
    @property
    def results(self) -> tuple[Operator, ...]:
        return self.roots

    @cached_property
    def inner_joins(self) -> tuple[tuple[OperatorId, ...], ...]:
        """The counter ids of each join whose output is joined again, children first."""
        roots = {root.id for root in self.roots}
        below = {op.id: op for root in self.roots for op in root.walk() if len(op.labels) > 1}
        return tuple(op.counted for id, op in below.items() if id not in roots)

    @override
    def operators(self) -> tuple[Operator, ...]:
        return self.roots

    @override
    @property
    def target(self) -> PlanBox:
        return self

    @override
    def advance(self, lane: Lane) -> tuple[Combinations, ...]:
        return tuple([root.drive(lane) for root in self.roots])

    @override
    def snapshot(self) -> Mapping[str, Any]:
        return {"box": "plan", "plan": self.notation}
