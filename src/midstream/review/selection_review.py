"""The order of conditions: at each round a chart decides in which order a query's conditions are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from midstream.model.codec import decode, encode
from midstream.model.counters import NOTHING
from midstream.model.events import PlanReviewed
from midstream.model.ids import CounterKey, OperatorId
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.optimization import Optimization, OptimizerSettings
from midstream.model.window import SECOND
from midstream.operators.source import SourceOperator
from midstream.optimizer.charts.chart_policy import ChartMemory
from midstream.optimizer.charts.selection_chart import (
    ObservedSelections,
    Order,
    SelectionChart,
    first_order,
    ordered_conditions,
    orders_text,
    parse_order,
)
from midstream.optimizer.policies.policy_contract import Decision, Review, WeighedPlan
from midstream.optimizer.statistics import Statistics
from midstream.proposals.plan_group import (
    has_conditions_to_order,
    is_chart_policy,
    is_quiet,
    queries_with_conditions,
    query_time,
    settings_of,
)
from midstream.review.carry_out import keep
from midstream.review.review import significant
from midstream.units.draft import Draft
from midstream.units.program import unit_of

Sources = Mapping[str, SourceOperator]
"""By alias the sources that have conditions to order."""


def review_selections(draft: Draft) -> None:
    """Order the conditions of each query that a chart policy looks after, once a round; forget other orders."""
    for name in queries_with_conditions(draft.manifest):
        entry, settings = draft.manifest.queries[name], settings_of(draft.manifest, name)
        charted = settings.mode == "auto" and is_chart_policy(settings.policy)
        if not charted or not has_conditions_to_order(draft.manifest, name):
            if entry.order:
                draft.manifest = draft.manifest.with_query(name, replace(entry, order={}))
            continue
        kept, now = draft.manifest.optimizations.get(name) or Optimization(), query_time(draft.manifest, name)
        since = kept.reviewed if kept.counted and entry.order else None
        if entry.order and (now is None or (since is not None and now - since < settings.review)):
            continue
        sources = _sources(draft.manifest, name)
        if not _fits(entry, sources):
            order = {alias: first_order(source.tested) for alias, source in sources.items()}
            draft.manifest = draft.manifest.with_query(name, replace(entry, order=order))
            since, kept = None, replace(kept, memory={}, counted=())
        if since is None or now is None:
            counted = () if now is None else _counted(draft.manifest, name, sources)
            keep(draft, name, _begun(draft.manifest, kept, now, counted))
        elif not kept.pinned and not is_quiet(settings, now):
            _review(draft, _Round(draft.manifest, name, settings, kept, now, sources))


@dataclass(frozen=True)
class _Round:
    """A round of a query that is over, at the event time `now`."""

    manifest: Manifest
    name: str
    settings: OptimizerSettings
    kept: Optimization
    now: int
    sources: Sources

    def observed(self) -> dict[str, ObservedSelections]:
        """What the conditions of each source did in the round; nothing if a counter began again at 0."""
        counted = iter(_counted(self.manifest, self.name, self.sources))
        found, before = dict[str, ObservedSelections](), iter(self.kept.counted)
        seconds = (self.now - (self.kept.reviewed or 0)) / SECOND
        for alias, source in self.sources.items():
            many = len(source.tested) + 2
            arrived, *tested, left = (next(counted) - next(before, 0) for _ in range(many))
            if min(arrived, left, *tested) < 0:
                return {}
            found[alias] = ObservedSelections(
                alias, source.tested, arrived / seconds, _shares(self.order(alias), tested, left), seconds
            )
        return found

    def order(self, alias: str) -> Order:
        """The order of the round."""
        return tuple(self.manifest.queries[self.name].order[alias])

    def shown(self) -> Review:
        """What a policy is shown, without the orders of one source."""
        nothing = WeighedPlan("", 0.0, 0.0, 0.0, 0.0)
        return Review(
            self.name, nothing, (), lambda plan: 0.0, lambda plan: None, self.now, 0.0, 0.0, Statistics({}),
            options=self.settings.options,
        )  # fmt: skip

    def memory(self) -> Mapping[str, Mapping[str, Any]]:
        """By alias what was remembered of its chart."""
        if self.kept.policy != self.settings.policy or "charts" not in self.kept.memory:
            return {}
        kept = decode(ChartMemory, self.kept.memory)
        return {
            chart.axes[-1].source: encode(
                ChartMemory((chart,), (kept.courses[number],), kept.watched[number : number + 1])
            )
            for number, chart in enumerate(kept.charts)
        }


def _review(draft: Draft, over: _Round) -> None:
    observed, known, shown = over.observed(), over.memory(), over.shown()
    begun = _begun(over.manifest, over.kept, over.now, _counted(over.manifest, over.name, over.sources))
    if not observed:
        keep(draft, over.name, begun)
        return
    decided = dict[str, Decision]()
    for alias, one in observed.items():
        chart = SelectionChart(one)
        at_hand = replace(shown, memory=known.get(alias, {}))
        decided[alias] = chart.decide(chart.review(at_hand, over.order(alias)))
    order = {alias: over.order(alias) for alias in over.sources}
    moved = {alias: parse_order(one.plan) for alias, one in decided.items() if one.plan is not None}
    reason = "; ".join(f"{alias}: {one.reason}" for alias, one in decided.items())
    kept = [decode(ChartMemory, one.memory) for one in decided.values()]
    memory = ChartMemory(*(tuple(one for many in kept for one in getattr(many, part)) for part in _PARTS))
    if moved:
        entry = replace(draft.manifest.queries[over.name], order={**order, **moved})
        draft.manifest = draft.manifest.with_query(over.name, entry)
    decision, before = "switch" if moved else "stay", orders_text(order)
    after = orders_text({**order, **moved}) if moved else ""
    policy, step = over.settings.policy, draft.manifest.step
    keep(
        draft,
        over.name,
        replace(begun, policy=policy, memory=encode(memory), decision=decision, reason=reason, plan=before),
    )
    figures = _figures(observed)
    draft.events.append(
        PlanReviewed(step, over.name, (over.name,), policy, decision, reason, before, after, figures=figures)
    )


_PARTS = ("charts", "courses", "watched")


def _begun(manifest: Manifest, kept: Optimization, now: int | None, counted: tuple[int, ...]) -> Optimization:
    return replace(kept, reviewed=now, reviewed_in=manifest.step, counted=counted)


def _counted(manifest: Manifest, name: str, sources: Sources) -> tuple[int, ...]:
    # For each source the rows that arrived, those that each condition was evaluated for, and those that all left.
    group, found = manifest.queries[name].group, list[int]()

    def count(operator: OperatorId) -> Any:
        return manifest.operators.get(CounterKey(group, operator), NOTHING)

    for source in sources.values():
        whole = count(source.id)
        found += [whole.rows_in, *(count(one).predicates for one in source.conditions), whole.rows_out]
    return tuple(found)


def _shares(order: Order, tested: list[int], left: int) -> tuple[float, ...]:
    # A condition that no row reached is taken to leave all rows, and so does not go before others.
    reached = [*(tested[number] for number in order), left]
    shares = {number: reached[place + 1] / (reached[place] or 1) for place, number in enumerate(order)}
    return tuple(shares[number] if tested[number] else 1.0 for number in range(len(tested)))


def _sources(manifest: Manifest, name: str) -> Sources:
    unit = unit_of(manifest, name)
    operators = (one for root in unit.box(unit.plan).roots for one in root.walk())
    found = {one.spec.label: one for one in operators if isinstance(one, SourceOperator)}
    return {
        alias: found[label]
        for alias, label in sorted(unit.labels_of(name).items())
        if len(ordered_conditions(found[label].tested)) > 1
    }


def _fits(entry: QueryEntry, sources: Sources) -> bool:
    return entry.order.keys() == sources.keys() and all(
        sorted(entry.order[alias]) == list(range(len(source.tested))) for alias, source in sources.items()
    )


def _figures(observed: Mapping[str, ObservedSelections]) -> dict[str, Any]:
    sources = {
        alias: {
            "rate": significant(one.rate),
            "conditions": {c.text(): significant(share) for c, share in zip(one.conditions, one.shares, strict=True)},
        }
        for alias, one in observed.items()
    }
    return {"foreseen": None, "real": None, "sources": sources}
