"""How many rows an inner join may make in a step before the step is broken off, reviewed and done again.

A plan that did next to nothing may have to make millions of rows in one step, as where a hot key comes to one more
stream. Counters tell that only afterwards. So a join that is about to make rows for several times the work of a usual
step and of a review stops first: what was done so far is lost, and if no plan is better the step takes that much more.
"""

from __future__ import annotations

from functools import cached_property

from midstream.model.ids import CounterKey
from midstream.model.window import SECOND
from midstream.proposals.plan_group import group_of, groups_with_choice, is_quiet, query_time
from midstream.review.review_price import trees_at_once, usual_step
from midstream.review.schedule import MADE, inner_joins
from midstream.step.plan_step import StepPlan

TIMES = 8.0  # so many times the work of a usual step and a review: an attempt in vain costs an eighth of the step


class JoinBounds:
    """The bounds of a step about to run, found when a join asks for one."""

    def __init__(self, plan: StepPlan) -> None:
        """Take a step that is to run by `auto` where it can."""
        self._plan = plan

    def most(self, join: CounterKey) -> int | None:
        """Return how many rows a join may make; None where nothing bounds it."""
        return self._found.get(join)

    @cached_property
    def _found(self) -> dict[CounterKey, int]:
        manifest, found = self._plan.manifest, dict[CounterKey, int]()
        for names in groups_with_choice(manifest):
            kept, now = manifest.optimizations.get(names[0]), query_time(manifest, names[0])
            if kept is None or kept.reviewed is None or now is None or kept.searched:
                continue
            one, steps = group_of(manifest, names), manifest.step - kept.reviewed_in
            if one.settings.mode != "auto" or not one.is_reviewed or is_quiet(one.settings, now) or not steps:
                continue
            moves = any(manifest.queries[name].migrations for name in names) or self._plan.migrations
            if moves or manifest.queries[names[0]].since >= manifest.step or trees_at_once(manifest, one) is not None:
                continue
            pace = max(kept.pace, kept.spared or 0.0) * (now - kept.reviewed) / SECOND / steps
            most = TIMES * (usual_step(manifest) + kept.price * kept.hurdle + pace) / MADE
            found |= {key: int(most) for keys in inner_joins(manifest, names[0]) for key in keys}
        return found
