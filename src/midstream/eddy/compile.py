"""From a canonical query and a plan of any form to operators."""

from __future__ import annotations

from midstream.eddy.cacq import EddyOperator
from midstream.eddy.stairs import routed
from midstream.eddy.stem import compile_stems
from midstream.operators import compile as joins
from midstream.operators.base import Operator
from midstream.operators.compile import Binding
from midstream.plan.tree import Eddy, Plan, Stairs


def compile_plan(binding: Binding, plan: Plan) -> Operator:
    """The operator of a plan over a canonical query's labels; eddies stand alone or at the root."""
    match plan:
        case Eddy(sources, policy):
            # The order in which a plan names them means nothing to an eddy.
            stems = compile_stems(binding, sorted(sources))
            return EddyOperator(binding.signature(sources), binding.rows(), stems, policy)
        case Stairs(tree):
            return routed(joins.compile_plan(binding, tree))
    return joins.compile_plan(binding, plan)
