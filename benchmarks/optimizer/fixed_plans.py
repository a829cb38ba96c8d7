"""Which plans are kept all the time, beside the policies: those that matter, found by what they would cost.

A query of three streams has all its trees run. Beyond that run the cheapest tree of each look at the streams, the
cheapest ones over all looks together, the dearest one, and at any number the cheapest probing orders of each look.
They are weighed as the optimizer weighs them, by samples of the rows at those moments; no tree is weighed that makes
cross products. Of more than five streams the trees weighed are the best ones that a search finds at each look, and
some drawn at random, among which the dearest is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from benchmarks.optimizer.course import LEAD, Course
from midstream.optimizer.search.best import best_plans
from midstream.plan.tree import Join, Leaf, MultiJoin, Plan, bushy_trees
from midstream.proposals.plan_group import plan_group
from midstream.review.review import Reviewing

ALL_RUN, ALL_WEIGHED = 3, 5
"""Up to so many streams all trees are run, or weighed."""

CHEAPEST, DRAWN, SEARCHED = 3, 200, 12
"""So many trees that are the cheapest ones over all looks run; so many are drawn, so many searched for at each look."""

BEFORE = 1.25
"""So many windows of rows are there at a look: the window is full."""


@dataclass(frozen=True)
class FixedPlans:
    """The plans that are run: `plans` the cheapest over all looks first, `best` and `worst` at the first look."""

    plans: tuple[str, ...]
    best: str
    worst: str

    @property
    def trees(self) -> tuple[str, ...]:
        """Those of the plans that are trees."""
        return tuple(plan for plan in self.plans if not plan.startswith("["))


@dataclass(frozen=True)
class Look:
    """What the streams are like at a moment, as the optimizer sees it."""

    reviewing: Reviewing

    @cached_property
    def found(self) -> tuple[Plan, ...]:
        """The plans that a search finds, the cheapest first."""
        estimate = self.reviewing.estimate
        sources, model = tuple(estimate.statistics.sources), self.reviewing.plans.model
        best = best_plans(sources, estimate.statistics.conditions, estimate, model, count=SEARCHED)
        return tuple(one.plan for one in best)

    def cost(self, plan: Plan) -> float:
        """What a plan would cost."""
        return self.reviewing.plans.model.of(plan, self.reviewing.estimate).value

    def crosses(self, plan: Plan) -> bool:
        """Whether a tree makes cross products."""
        if not isinstance(plan, Join):
            return False
        left, right = frozenset(plan.left.aliases()), frozenset(plan.right.aliases())
        tied = any(c.sources & left and c.sources & right for c in self.reviewing.estimate.statistics.conditions)
        return not tied or self.crosses(plan.left) or self.crosses(plan.right)


def fixed_plans(course: Course) -> FixedPlans:
    """The plans to run in a scenario."""
    looks = [look(course, at) for at in course.scenario.looks]
    trees = sorted(_trees(course, looks), key=lambda tree: sum(one.cost(tree) for one in looks))
    first = sorted(trees, key=looks[0].cost)
    chosen = trees
    if len(course.scenario.feeds) > ALL_RUN:
        best = {min(trees, key=one.cost) for one in looks}
        chosen = [tree for tree in trees if tree in best or tree in trees[:CHEAPEST]] + [first[-1], trees[-1]]
    orders = [plan for one in looks for plan in one.found if isinstance(plan, MultiJoin)]
    names = dict.fromkeys(plan.notation() for plan in (*chosen, *orders))
    return FixedPlans(tuple(names), first[0].notation(), first[-1].notation())


def look(course: Course, at: float) -> Look:
    """What the streams are like at a moment, in windows."""
    engine, window = course.engine(None), course.load.window
    until = max(round(at * window / course.load.tick), 1)
    since = max(0, min(round(until - BEFORE * window / course.load.tick), until - 1))
    for _, tables in zip(range(since, until), course.steps(since * course.load.tick), strict=False):
        engine.push(tables)
    now = round(until * course.load.tick * 1e6)
    return Look(Reviewing(engine.manifest, plan_group(engine.manifest, LEAD), now, engine._store))


def _trees(course: Course, looks: Sequence[Look]) -> list[Plan]:
    names = list(course.scenario.feeds)
    found = [plan for one in looks for plan in one.found if isinstance(plan, Join)]
    other = bushy_trees(names) if len(names) <= ALL_WEIGHED else _drawn(names, course.scenario.seed)
    trees = {plan.notation(): plan for plan in (*other, *found) if not looks[0].crosses(plan)}
    return list(trees.values())


def _drawn(names: Sequence[str], seed: int) -> Iterator[Plan]:
    random = Random(seed)
    for _ in range(DRAWN):
        parts: list[Plan] = [Leaf(name) for name in names]
        while len(parts) > 1:
            random.shuffle(parts)
            parts.append(Join(parts.pop(), parts.pop()))
        yield parts[0]
