"""The contract of a form, and how forms are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import midstream.operators.forms as room
from midstream.model.discovery import OpenSet
from midstream.model.errors import PlanError
from midstream.runtime.operator import Operator


class OperatorForm(ABC):
    """Another way to run a tree of window joins.

    `name` is its word in plan notation: a plan `name(((A B) C))` is compiled as a tree of joins, which `compile` turns
    into the operator that runs. That operator, and those below it, must give what the tree gives, in any step and from
    any cut into steps; where a state of theirs has the id of one of the tree's, it must hold the same rows. They are
    frozen values that keep their state in the lane only (see `Operator` and `Lane`); what they compare they count.

    Strategies that look into join trees (`jisc`, `hybmig`) see operators that derive from `WindowJoin` as joins, and
    take any other operator for a plan as a whole.
    """

    name: ClassVar[str]

    @abstractmethod
    def compile(self, tree: Operator) -> Operator:
        """The operator in place of a compiled tree; called once for each plan, not in each step."""


_SET = OpenSet(
    room, OperatorForm, "midstream.operators", "no operator is called", place="plan", error=PlanError, also=("eddy",)
)
forms, form = _SET.all, _SET.named
