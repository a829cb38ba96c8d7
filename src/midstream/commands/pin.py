"""Have a query keep its plan, or no longer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.commands.migrate import Migrate
from midstream.logical.query import query_of
from midstream.model.command import Prompt, QueryName
from midstream.model.events import Event, PlanPinned
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.plan.notation import parse_plan
from midstream.proposals.proposals import withdraw
from midstream.units.choose import AUTO
from midstream.units.draft import Draft


@dataclass(frozen=True)
class Pin(StepCommand):
    """Keep a query on its plan, or on another one that it moves to first, regardless of what the optimizer finds.

    You may still move it.
    """

    examples = ("ckpt pairs",)

    query: Annotated[str, QueryName]
    plan: Annotated[str, Prompt("The plan to keep; without it, the present one.", "PLAN", argument=True)] = ""

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
    """Let the optimizer review the plan of a query again."""

    examples = ("ckpt pairs",)

    query: Annotated[str, QueryName]

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
