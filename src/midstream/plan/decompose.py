"""Decomposition of a migration at common subplans (HybMig §3.1, Fig. 5).

Where the paper walks the old plan's operators and looks for an equal operator in the new plan, we compare the sets of
sources below: within one query, equal sources mean an equal signature and so equal output.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from midstream.plan.tree import Form, Join, Leaf, Plan


@dataclass(frozen=True)
class MigrationTask:
    """One irreducible piece of a migration: an old and a new subplan over the same inputs.

    A common subplan below it stands as one leaf, named by its own notation's sources joined with `+`.
    """

    old: Plan
    new: Plan


def decompose(old: Plan, new: Plan) -> tuple[MigrationTask, ...]:
    """Split a migration at common subplans; pieces whose old and new plan are the same are discarded.

    Tasks come bottom-up; those between two of one form are those between their trees. Any other plan is no join tree,
    cannot be split and is one task.

    >>> a, b, c, d = map(Leaf, "ABCD")
    >>> tasks = decompose(Join(Join(Join(a, b), c), d), Join(Join(a, b), Join(c, d)))
    >>> [(t.old.notation(), t.new.notation()) for t in tasks]
    [('((A+B C) D)', '(A+B (C D))')]
    >>> decompose(Join(a, b), Join(b, a))
    ()
    """
    if isinstance(old, Form) and isinstance(new, Form) and old.name == new.name:
        return decompose(old.tree, new.tree)
    if not (isinstance(old, Join) and isinstance(new, Join)):
        return () if old == new else (MigrationTask(old, new),)
    common = subplans(old).keys() & subplans(new).keys()
    tasks = []
    for sources in sorted(common, key=lambda s: (len(s), sorted(s))):
        before = _cut(subplans(old)[sources], common - {sources})
        after = _cut(subplans(new)[sources], common - {sources})
        if not same_shape(before, after):
            tasks.append(MigrationTask(before, after))
    return tuple(tasks)


def subplans(plan: Plan) -> dict[frozenset[str], Plan]:
    """Every joining subplan by its set of sources."""
    if not isinstance(plan, Join):
        return {}
    return {**subplans(plan.left), **subplans(plan.right), frozenset(plan.aliases()): plan}


def same_shape(one: Plan, other: Plan) -> bool:
    """Whether two plans differ only in which side of a join is called left."""
    if isinstance(one, Join) and isinstance(other, Join):
        straight = same_shape(one.left, other.left) and same_shape(one.right, other.right)
        return straight or (same_shape(one.left, other.right) and same_shape(one.right, other.left))
    return one == other


def _cut(plan: Plan, common: Set[frozenset[str]]) -> Plan:
    assert isinstance(plan, Join)
    return Join(_cut_side(plan.left, common), _cut_side(plan.right, common))


def _cut_side(side: Plan, common: Set[frozenset[str]]) -> Plan:
    if frozenset(side.aliases()) in common:
        return Leaf("+".join(sorted(side.aliases())))
    return _cut(side, common) if isinstance(side, Join) else side
