"""From a canonical query and a plan of any form to operators."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.operators.binding import Binding, compile_source
from midstream.operators.eddy.cacq_eddy import EddyOperator
from midstream.operators.eddy.stem import compile_stems
from midstream.operators.join_condition import join_condition
from midstream.operators.multi_join import Hop, MultiJoinOperator, Route
from midstream.operators.operator_form import form
from midstream.operators.window_join import WindowJoin
from midstream.plan.tree import Eddy, Form, Join, Leaf, MultiJoin, Plan
from midstream.runtime.operator import Operator
from midstream.state.specs import RowsSpec


def compile_plan(binding: Binding, plan: Plan) -> Operator:
    """The operator of a plan over a canonical query's labels; eddies stand alone or at the root."""
    rows = binding.rows()
    match plan:
        case Leaf(label):
            return binding.leaf(label)
        case Join(left, right):
            return _compile_join(binding, rows, compile_plan(binding, left), compile_plan(binding, right))
        case MultiJoin(orders):
            routes = tuple(compile_route(binding, label, order) for label, order in orders)
            return MultiJoinOperator(binding.signature(plan.aliases()), rows, routes)
        case Eddy(sources, policy):
            # The order in which a plan names them means nothing to an eddy.
            stems = compile_stems(binding, sorted(sources))
            return EddyOperator(binding.signature(sources), rows, stems, policy)
        case Form(name, tree):
            return form(name).compile(compile_plan(binding, tree))
    raise TypeError(plan)


def compile_pair(binding: Binding, left: str, right: str) -> WindowJoin:
    """The join of two sources, whatever the plan."""
    return _compile_join(binding, binding.rows(), compile_source(binding, left), compile_source(binding, right))


def _compile_join(binding: Binding, rows: Mapping[str, RowsSpec], left: Operator, right: Operator) -> WindowJoin:
    one, other = left.labels, right.labels
    between = join_condition(binding.query, one, other)
    return WindowJoin(
        binding.signature(one | other),
        rows,
        left,
        right,
        binding.state(one, between.index, between.left_key),
        binding.state(other, between.index, between.right_key),
        between,
        binding.need(one | other),
    )


def compile_route(binding: Binding, label: str, order: tuple[str, ...]) -> Route:
    """Compile the probing order of one input."""
    seen, hops = frozenset({label}), []
    for following in order:
        between = join_condition(binding.query, seen, frozenset({following}))
        hops.append(Hop(binding.state((following,), between.index, between.right_key), between))
        seen |= {following}
    return Route(compile_source(binding, label), tuple(hops))
