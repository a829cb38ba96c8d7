"""A view: states of a plan that hold only a part of what their signature says, while a migration is under way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from midstream.plan.signature import ViewName
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class View:
    """Which operators and states of a plan stand apart, by their sets of sources, and under what name.

    Base rows are never in a view: they are stored once, for every plan.
    """

    name: ViewName
    operators: frozenset[frozenset[str]]
    states: frozenset[frozenset[str]]

    def state(self, spec: StateSpec) -> StateSpec:
        """The state under its name in the view."""
        if frozenset(spec.labels) not in self.states:
            return spec
        return replace(spec, signature=spec.signature.within(self.name))

    def covers(self, labels: frozenset[str]) -> bool:
        """Whether the operator over these sources stands apart."""
        return labels in self.operators
