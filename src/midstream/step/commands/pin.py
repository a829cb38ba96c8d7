"""Have a query keep its plan, or no longer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from typing_extensions import override

from midstream.language.query import query_of
from midstream.model.events import Event, PlanPinned
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.plan.notation import parse_plan
from midstream.step.choose import AUTO
from midstream.step.commands.base import StepCommand
from midstream.step.commands.migrate import Migrate
from midstream.step.draft import Draft
from midstream.step.reviewing.proposals import withdraw


@dataclass(frozen=True)
class Pin(StepCommand):
    """Have a query keep a plan: the present one, or one that it moves to first. Users may still move it."""

    query: str
    plan: str = ""

    @override
    def apply(self, draft: Draft) -> None:
        entry = draft.entry(self.query)
        query = query_of(entry)
        plan = parse_plan(self.plan, query).notation() if self.plan else entry.plan
        if plan != entry.plan:
            Migrate(self.query, plan, AUTO).apply(draft)
        withdraw(draft, self.query, "the plan was pinned")
        draft.manifest = _with_pin(draft.manifest, self.query, pinned=True)
        draft.events.append(PlanPinned(draft.manifest.step, self.query, plan))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, PlanPinned) and event.query == self.query and event.pinned


@dataclass(frozen=True)
class Unpin(StepCommand):
    """Let the optimizer look at the plan of a query again."""

    query: str

    @override
    def apply(self, draft: Draft) -> None:
        entry = draft.entry(self.query)
        draft.manifest = _with_pin(draft.manifest, self.query, pinned=False)
        draft.events.append(PlanPinned(draft.manifest.step, self.query, entry.plan, pinned=False))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, PlanPinned) and event.query == self.query and not event.pinned


def _with_pin(manifest: Manifest, query: str, *, pinned: bool) -> Manifest:
    kept = replace(manifest.optimizations.get(query, Optimization()), pinned=pinned)
    return replace(manifest, optimizations={**manifest.optimizations, query: kept})
