"""The plans that a query could run by, with what each would cost, as the optimizer sees them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from midstream.checkpoint.report import lanes_report
from midstream.checkpoint.report_values import LanesReport, ReportValue
from midstream.model.codec import encode
from midstream.model.errors import QueryError
from midstream.model.html import html_fields, html_table
from midstream.model.manifest import Manifest
from midstream.model.optimization import OptimizerSettings, Proposal
from midstream.model.words import counted
from midstream.optimizer.charts.selection_chart import orders_text
from midstream.proposals.plan_group import plan_group, query_time, without_choice
from midstream.review.carry_out import decide, figures, table
from midstream.review.review import Reviewing
from midstream.state.chunk_store import ChunkStore

RANKED = 20
"""So many of the best plans are listed."""


@dataclass(frozen=True)
class PlansReport(ReportValue):
    """The plans of a query, the cheapest first, and what the policy would decide if it were asked now.

    `plans` are as in the event `PlanReviewed`, `figures` too. `queries` move together. `why_none` says why there is
    nothing to choose; then there are no plans. `proposal` is the last one, `last` what the last review decided. `lanes`
    says how it stands with the number of lanes of the whole job.
    """

    query: str
    queries: tuple[str, ...]
    plan: str
    settings: OptimizerSettings
    pinned: bool
    plans: tuple[Mapping[str, Any], ...] = ()
    would: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    switch: Mapping[str, Any] = field(default_factory=dict)
    proposal: Proposal | None = None
    last: str = ""
    lanes: LanesReport | None = None
    why_none: str = ""

    def __repr__(self) -> str:
        best = f"{counted(len(self.plans), 'plan')} ranked" if self.plans else f"nothing to choose: {self.why_none}"
        would = f"; {self.would}" if self.would else ""
        return f"<Plans of query {self.query}, which runs by {self.plan}: {best}{would}>"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for one in self.plans for name in one))
        rows = [[one.get(name) for name in names] for one in self.plans]
        head = {"query": self.query, "plan": self.plan, "would": self.would, "last": self.last, "none": self.why_none}
        return html_fields("", head) + html_table("plans, the cheapest first", names, rows)


def plans_report(manifest: Manifest, query: str, store: ChunkStore) -> PlansReport:
    """Report the plans of a running query by its manifest and chunks; changes nothing."""
    if not isinstance(query, str) or query not in manifest.queries:
        known = ", ".join(manifest.asked_queries)
        remedy = f"use one of: {known}" if known else "add a query first"
        raise QueryError(f"there is no query {query!r}", place=f"{query}", remedy=remedy)
    one, now = plan_group(manifest, query), query_time(manifest, query)
    last = f"{one.kept.decision}: {one.kept.reason} (in step {one.kept.reviewed_in})" if one.kept.decision else ""
    plan = manifest.queries[one.lead].plan
    known_already = PlansReport(
        one.lead, one.queries, plan, one.settings, one.pinned,
        proposal=one.kept.proposal, last=last, lanes=lanes_report(manifest),
    )  # fmt: skip
    why_none = without_choice(manifest, one.lead)
    if not why_none and (now is None or manifest.queries[one.lead].since > manifest.step):
        why_none = "nothing is known of its streams yet"
    if why_none and (order := manifest.queries[one.lead].order):
        why_none += f"; the conditions of its streams are evaluated in the order {orders_text(order)}"
    if why_none:
        return replace(known_already, why_none=why_none)
    reviewing = Reviewing(manifest, one, now or 0, store)
    decision, _ = decide(reviewing)
    cheapest = next(iter(reviewing.alternatives), None)
    moved_to = decision.plan or (cheapest.plan if cheapest else None)
    switch = None if moved_to is None else reviewing.predict(moved_to)
    return replace(
        known_already,
        plans=table(reviewing, decision, RANKED),
        would=f"{'stay' if decision.plan is None else 'move to ' + decision.plan}: {decision.reason}",
        figures=figures(reviewing),
        switch={} if switch is None else {"plan": moved_to, **encode(switch)},
    )
