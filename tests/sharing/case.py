"""A case: rows in steps, and what is done to the engine before each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.arrival import Step
from tests.oracle.spec import StreamSpec
from tests.property.drive import Rescale, Restart
from tests.sharing.family import Asked


@dataclass(frozen=True)
class Add:
    """Before a step: begin a query."""

    step: int
    query: str
    asked: Asked
    history: bool = True


@dataclass(frozen=True)
class Drop:
    """Before a step: end a query."""

    step: int
    query: str


@dataclass(frozen=True)
class Change:
    """Before a step: give a query another window, filter or select list."""

    step: int
    query: str
    asked: Asked


@dataclass(frozen=True)
class Move:
    """Before a step: migrate a query, or (`together`) the plan it shares."""

    step: int
    query: str
    plan: str
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    together: bool = False


@dataclass(frozen=True)
class Reshare:
    """Before a step: let queries share by another mode."""

    step: int
    sharing: str


Action = Add | Drop | Change | Move | Reshare | Rescale | Restart


@dataclass(frozen=True)
class Case:
    """Actions are done in their order; one of a query that does not run is passed over, so that a case can shrink."""

    streams: tuple[StreamSpec, ...]
    steps: tuple[Step, ...]
    actions: tuple[Action, ...]
    sharing: str = "auto"
    lanes: int = 1
    in_order: bool = False

    @property
    def straight(self) -> bool:
        """Whether the whole output comes in order of time."""
        return self.in_order and self.lanes == 1 and not any(isinstance(a, Rescale) for a in self.actions)
