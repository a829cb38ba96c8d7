"""Say what the optimizer may do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from typing_extensions import override

from midstream.model.events import Event, OptimizerSet
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, OptimizerSettings
from midstream.step.commands.base import StepCommand
from midstream.step.draft import Draft
from midstream.step.reviewing.group_settings import settings_of
from midstream.step.reviewing.lane_review import withdraw_lanes
from midstream.step.reviewing.proposals import withdraw, withdraw_without_own_settings
from midstream.step.reviewing.settings import (
    check_allowed,
    check_allowed_anywhere,
    check_lanes_of_job,
    check_settings,
)


@dataclass(frozen=True)
class Optimize(StepCommand):
    """Let the optimizer look after a query by these settings, or (no name) after all that have none of their own."""

    query: str = ""
    settings: OptimizerSettings = field(default_factory=OptimizerSettings)

    @override
    def apply(self, draft: Draft) -> None:
        place = f"query {self.query}" if self.query else "optimize"
        check_settings(self.settings, place)
        if self.query:
            draft.entry(self.query)
            check_lanes_of_job(self.settings, place)
            check_allowed(draft.manifest, self.query, self.settings)
            kept = draft.manifest.optimizations.get(self.query, Optimization())
            optimizations = {**draft.manifest.optimizations, self.query: replace(kept, settings=self.settings)}
            draft.manifest = replace(draft.manifest, optimizations=optimizations)
            withdraw(draft, self.query, "the optimizer was set anew")
        else:
            check_allowed_anywhere(self.settings, place)
            draft.manifest = replace(draft.manifest, optimizer=self.settings)
            withdraw_without_own_settings(draft, "the optimizer was set anew")
            withdraw_lanes(draft, "the optimizer was set anew")
        draft.events.append(OptimizerSet(draft.manifest.step, self.query, self.settings.mode, self.settings.policy))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, OptimizerSet) and event.query == self.query

    @override
    def is_met(self, manifest: Manifest) -> bool:
        if not self.query:
            return manifest.optimizer == self.settings
        return self.query in manifest.queries and settings_of(manifest, self.query) == self.settings
