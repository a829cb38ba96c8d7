"""`stairs(TREE)`: an eddy whose join state is kept (STAIRs: JISC §3.2).

Each join of the present routing tree is a pair of STAIRs, duals of each other: a row that the eddy routes there is
inserted into one and probes the other, and what it finds returns to the eddy. So the states and results are those of
the tree of joins, and each row in a join's input is one that went through the eddy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from typing_extensions import override

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.operators.operator_form import OperatorForm
from midstream.operators.window_join import WindowJoin
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations


@dataclass(frozen=True)
class StairsJoin(WindowJoin):
    """A pair of STAIRs: a window join that the eddy routes to, a hop for each row."""

    @override
    @cached_property
    def id(self) -> OperatorId:
        one, other = sorted((self.left_state.id, self.right_state.id))
        return OperatorId("stairs", f"{one} {other} {self.signature.digest()}")

    @override
    def advance(self, lane: Lane) -> Combinations:
        found = super().advance(lane)
        lane.count(self.id, Counters(hops=len(self.left.delta(lane)) + len(self.right.delta(lane))))
        return found

    @override
    def describe(self) -> str:
        return f"stairs {self.on.describe()}"


def routed(tree: Operator) -> Operator:
    """A tree of joins as an eddy runs it."""
    if not isinstance(tree, WindowJoin):
        return tree
    return StairsJoin.like(tree.with_children([routed(child) for child in tree.children()]))


class StairsForm(OperatorForm):
    """Each join of the tree becomes a pair of STAIRs, to which the eddy routes every row of its inputs."""

    name: ClassVar[str] = "stairs"

    @override
    def compile(self, tree: Operator) -> Operator:
        return routed(tree)
