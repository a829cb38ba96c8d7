"""Decomposition of a migration at common subplans (HybMig §3.1, Fig. 5).

Where the paper walks the old plan's operators and looks for an equal operator in the new plan, we compare the sets of
sources below: within one query, equal sources mean an equal signature and so equal output.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from midstream.plan.tree import Common, Eddy, Form, Join, Leaf, MultiJoin, Plan

Sources = frozenset[str]


@dataclass(frozen=True)
class Task:
    """One irreducible piece of a migration: old and new plan differ over `sources`, between them and the `units`.

    A unit is a source, or a subplan that both plans have, by its sources: one stream to either of them.
    """

    sources: Sources
    units: frozenset[Sources]

    def piece(self, plan: Plan) -> Plan:
        """Cut the task's part out of the old or the new plan, with common subplans as `Common`."""
        return self.piece_of({frozenset(plan.aliases()): plan, **subplans(plan)})

    def piece_of(self, parts: Mapping[Sources, Plan]) -> Plan:
        """Cut the task's part out of a plan, of which these are the subplans."""
        return _cut(parts[self.sources], self.units - {self.sources})


def decompose(old: Plan, new: Plan, at: Container[Sources] | None = None) -> tuple[Task, ...]:
    """Split a migration at common subplans, bottom-up; pieces whose old and new plan are the same are left out.

    `at` names the subplans of the old plan, by their sources, at which it may be split: any of them where it is None,
    none where it is empty. A multi-way join or an eddy cannot be split.

    >>> a, b, c, d = map(Leaf, "ABCD")
    >>> old, new = Join(Join(Join(a, b), c), d), Join(Join(a, b), Join(c, d))
    >>> [(t.piece(old).notation(), t.piece(new).notation()) for t in decompose(old, new)]
    [('((A+B C) D)', '(A+B (C D))')]
    >>> decompose(Join(a, b), Join(b, a))
    ()
    """
    whole = frozenset(new.aliases())
    before, after = {whole: old, **subplans(old)}, {whole: new, **subplans(new)}
    shared = {sources for sources in before.keys() & after.keys() if at is None or sources in at} | {whole}
    tasks = []
    for sources in sorted(shared, key=lambda s: (len(s), sorted(s))):
        task = Task(sources, frozenset(_units(after[sources], shared - {sources})))
        if not same_shape(task.piece_of(before), task.piece_of(after)):
            tasks.append(task)
    return tuple(tasks)


def subplans(plan: Plan) -> dict[Sources, Plan]:
    """Map every joining subplan by its set of sources; those of a tree in another form are in that form."""
    match plan:
        case Join():
            return {frozenset(one.aliases()): one for one in plan.walk() if isinstance(one, Join)}
        case Form(name, tree):
            return {sources: Form(name, inner) for sources, inner in subplans(tree).items()}
        case MultiJoin() | Eddy():
            return {frozenset(plan.aliases()): plan}
    return {}


def same_shape(one: Plan, other: Plan) -> bool:
    """Return whether two plans differ only in order: left and right side of a join, first named source."""
    match one, other:
        case Join(), Join():
            straight = same_shape(one.left, other.left) and same_shape(one.right, other.right)
            return straight or (same_shape(one.left, other.right) and same_shape(one.right, other.left))
        case Form(), Form():
            return one.name == other.name and same_shape(one.tree, other.tree)
        case MultiJoin(), MultiJoin():
            return dict(one.orders) == dict(other.orders)
        case Eddy(), Eddy():
            return (one.policy, {*one.sources}) == (other.policy, {*other.sources})
    return one == other


def _units(plan: Plan, shared: Container[Sources]) -> set[Sources]:
    # Sources outside the greatest common subplans are units of their own.
    match plan:
        case Join():
            return {unit for side in (plan.left, plan.right) for unit in _units_of_side(side, shared)}
        case Form(_, tree):
            return _units(tree, shared)
    return {frozenset({alias}) for alias in plan.aliases()}


def _units_of_side(side: Plan, shared: Container[Sources]) -> set[Sources]:
    sources = frozenset(side.aliases())
    return {sources} if sources in shared else _units(side, shared)


def _cut(plan: Plan, units: Container[Sources]) -> Plan:
    match plan:
        case Join():
            return Join(_cut_side(plan.left, units), _cut_side(plan.right, units))
        case Form(name, tree):
            return Form(name, _cut(tree, units))
    return plan


def _cut_side(side: Plan, units: Container[Sources]) -> Plan:
    if not isinstance(side, Leaf) and frozenset(side.aliases()) in units:
        return Common(tuple(sorted(side.aliases())))
    return _cut(side, units)
