"""Say what the optimizer may do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from typing_extensions import override

from midstream.commands.base import StepCommand
from midstream.model.events import Event, OptimizerSet
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, OptimizerSettings
from midstream.proposals.plan_group import settings_of
from midstream.proposals.proposals import withdraw, withdraw_lanes, withdraw_without_own_settings
from midstream.proposals.settings import (
    check_allowed,
    check_allowed_anywhere,
    check_lanes_of_job,
    check_settings,
)
from midstream.units.draft import Draft


@dataclass(frozen=True)
class Optimize(StepCommand):
    """Let the optimizer look after a query by these settings, or (no name) after all that have none of their own."""

    query: str = ""
    settings: OptimizerSettings = field(default_factory=OptimizerSettings)
    as_job: bool = False  # users named no mode: the job's counts

    verb = None

    @override
    def apply(self, draft: Draft) -> None:
        place = f"query {self.query}" if self.query else "optimize"
        settings = self._settings(draft.manifest)
        check_settings(settings, place)
        if self.query:
            draft.entry(self.query)
            check_lanes_of_job(settings, place)
            check_allowed(draft.manifest, self.query, settings)
            kept = draft.manifest.optimizations.get(self.query, Optimization())
            optimizations = {**draft.manifest.optimizations, self.query: replace(kept, settings=settings)}
            draft.manifest = replace(draft.manifest, optimizations=optimizations)
            withdraw(draft, self.query, "the optimizer got new settings")
        else:
            check_allowed_anywhere(settings, place)
            draft.manifest = replace(draft.manifest, optimizer=settings)
            withdraw_without_own_settings(draft, "the optimizer got new settings")
            withdraw_lanes(draft, "the optimizer got new settings")
        draft.events.append(OptimizerSet(draft.manifest.step, self.query, settings.mode, settings.policy))

    @override
    def is_done_by(self, event: Event) -> bool:
        return isinstance(event, OptimizerSet) and event.query == self.query

    @override
    def is_met(self, manifest: Manifest) -> bool:
        if not self.query:
            return manifest.optimizer == self._settings(manifest)
        return self.query in manifest.queries and settings_of(manifest, self.query) == self._settings(manifest)

    def _settings(self, manifest: Manifest) -> OptimizerSettings:
        return replace(self.settings, mode=manifest.optimizer.mode) if self.as_job else self.settings
