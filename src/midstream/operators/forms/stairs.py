"""`stairs(TREE)`: an eddy whose join state is kept (STAIRs: JISC §3.2)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from midstream.operators.operator_form import OperatorForm
from midstream.operators.stairs_join import routed
from midstream.runtime.operator import Operator


class StairsForm(OperatorForm):
    """Each join of the tree becomes a pair of STAIRs, to which the eddy routes every row of its inputs."""

    name: ClassVar[str] = "stairs"

    @override
    def compile(self, tree: Operator) -> Operator:
        return routed(tree)
