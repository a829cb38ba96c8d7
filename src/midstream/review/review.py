"""What a policy is shown: the running plan and its alternatives, weighed by what the manifest and its chunks say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from midstream.logical.query import Query, query_of
from midstream.model.errors import MidstreamError
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.window import SECOND
from midstream.optimizer.alternatives import Alternatives, cost_model
from midstream.optimizer.charts.rates import CostAtRates
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.policy_contract import Decision, Review, SwitchCost, WeighedPlan, policy
from midstream.optimizer.prediction import Prediction
from midstream.optimizer.search.greedy import Searched
from midstream.optimizer.statistics import Sources
from midstream.plan.decompose import same_shape, subplans
from midstream.plan.notation import parse_plan
from midstream.plan.signature import relabel_plan
from midstream.plan.tree import Join, Leaf, Plan
from midstream.proposals.plan_group import PlanGroup, split_allowed
from midstream.review.review_price import price, slice_price
from midstream.state.chunk_store import ChunkStore
from midstream.units.choose import AUTO, live_statistics, resolve
from midstream.units.draft import MigrationStart
from midstream.units.program import compile_program, observed, unit_of
from midstream.units.unit import Unit

BETWEEN = "\0"  # between plans: no name has it
SHOWN = 5  # so many of the best plans are in an event


@dataclass(frozen=True)
class Reviewing:
    """One review: of what runs together in a manifest, at an event time; `store` has the chunks.

    Over many sources at most `limit` trees are weighed, and the review goes on at the next step. `exceeded` has the
    rows that inner joins are about to make in this step.
    """

    manifest: Manifest
    one: PlanGroup
    now: int
    store: ChunkStore
    limit: int | None = None
    exceeded: Mapping[CounterKey, int] | None = None

    @cached_property
    def query(self) -> Query:
        """The query of the lead."""
        return query_of(self.manifest.queries[self.one.lead])

    @cached_property
    def estimate(self) -> Estimate:
        """What its plans would hold and do: counted where the running plan keeps it, else by samples of its rows."""
        known = live_statistics(self.manifest, self.one.lead, self.store)
        if not self.exceeded:
            return Estimate(known)
        seen, states = observed(self.manifest, self.one.lead), dict(known.states)
        for join in seen.operators:
            if rows := self.exceeded.get(CounterKey(seen.group, join.id)):
                sources = frozenset(alias for alias, label in seen.labels.items() if label in join.labels)
                states[sources] = states.get(sources, 0.0) + rows
        return Estimate(replace(known, states=states))

    @property
    def review(self) -> Review:
        """What the policy is shown."""
        # Not kept: it would hold what holds it, and the samples would wait for a garbage collection.
        kept, figures = self.one.kept, self.estimate.statistics
        horizon = self.one.settings.horizon
        return Review(
            query=self.one.lead,
            running=self.running,
            alternatives=self.alternatives,
            sure_gain=self.sure_gain,
            predict=self.predict,
            time=self.now,
            elapsed=self.elapsed,
            window=figures.window,
            statistics=figures,
            horizon=None if horizon is None else horizon / SECOND,
            real=self.real,
            seed=self.manifest.seed,
            step=self.manifest.step,
            options=self.one.settings.options,
            memory=kept.memory if kept.policy == self.one.settings.policy else {},
            lost=kept.excess / max(kept.price, 1.0),
            price=max(kept.price, 1.0),
            at_rates=self.at_rates,
            weigh=self.weigh,
        )

    @property
    def price(self) -> float:
        """What the review takes, foreseen in nanoseconds."""
        sources, search = self.estimate.statistics.sources.values(), self.plans.searched
        if search is not None and not search.done:
            return slice_price(len(sources))
        return price(len(sources), sum(one.rows for one in sources), sliced=self.limit is not None)

    def decide(self) -> Decision:
        """Decide as the policy does; stay where the settings of queries that move together leave no choice."""
        decision = policy(self.one.settings.policy).decide(self.review)
        return replace(decision, plan=None, reason=self.one.conflict) if self.one.conflict else decision

    @cached_property
    def plans(self) -> Alternatives:
        """The running plan and those that are allowed, weighed."""
        settings, aliases = self.one.settings, [source.alias for source in self.query.sources]
        current = parse_plan(self.manifest.queries[self.one.lead].plan, self.query)
        allowed, _ = split_allowed(settings.allow, self.query)
        if allowed or self.one.conflict:
            allowed = (current, *(plan for plan in allowed if not same_shape(plan, current)))
        return Alternatives(
            current,
            self.estimate,
            cost_model(
                settings.objective,
                settings.weights,
                settings.units,
                self.manifest.lane_optimization.slowness.factor,
            ),
            others_keep=kept_by_others(self.manifest, self.one.lead),
            allowed=allowed,
            also=tuple(parse_plan(plan, self.query) for plan in policy(settings.policy).plans(aliases)),
            begun=self._begun,
            limit=self.limit,
        )

    @property
    def _begun(self) -> Searched | None:
        kept = self.one.kept
        if not kept.searched:
            return None
        tree, *others = [parse_plan(plan, self.query) for plan in kept.searched.split(BETWEEN)]
        return Searched(tree, kept.at, kept.tried, others=tuple(others))

    @property
    def running(self) -> WeighedPlan:
        """The running plan, weighed."""
        return self.plans.running

    @property
    def alternatives(self) -> tuple[WeighedPlan, ...]:
        """The other plans that are allowed, the cheapest first."""
        return self.plans.others

    def at_rates(self, plans: Sequence[str]) -> CostAtRates:
        """Return what plans would cost at other rates and selectivities."""
        trees = [parse_plan(plan, self.query) for plan in plans]
        return CostAtRates.of(trees, self.estimate, self.plans.model)

    def weigh(self, plan: str) -> float | None:
        """Compute what any plan would cost; None where it is not a plan of the query."""
        try:
            tree = parse_plan(plan, self.query)
        except MidstreamError:
            return None
        return self.plans.weighing.of(tree).value

    def sure_gain(self, plan: str) -> float:
        """Compute what a plan saves even where the figures are wrong."""
        return self.plans.sure_gain(parse_plan(plan, self.query))

    @property
    def elapsed(self) -> float:
        """The seconds of event time since the last review, 0 before the first."""
        kept = self.one.kept
        return max(self.now - kept.reviewed, 0) / SECOND if kept.reviewed is not None else 0.0

    @cached_property
    def real(self) -> float | None:
        """The real cost of the running plan since the last review; None where a migration is part of that."""
        entry, kept = self.manifest.queries[self.one.lead], self.one.kept
        if not self.elapsed or kept.plan != entry.plan:
            return None
        return self.plans.real((entry.counters.comparisons - kept.comparisons) / self.elapsed)

    def predict(self, plan: str) -> SwitchCost | None:
        """Predict the cost of a move to a plan by the allowed strategy that suits it best. None if there is none."""
        if plan not in self._predicted:
            self._predicted[plan] = self._prediction(plan)
        return self._predicted[plan]

    def _prediction(self, plan: str) -> SwitchCost | None:
        _, strategies = split_allowed(self.one.settings.allow, self.query)
        start = MigrationStart(self.one.lead, plan, AUTO, {"objective": self.one.settings.objective})
        try:
            chosen, predicted, _ = resolve(self.manifest, start, self.estimate.statistics, strategies)
        except MidstreamError:
            return None
        return self.plans.price(chosen.strategy, Prediction(**predicted))

    @cached_property
    def _predicted(self) -> dict[str, SwitchCost | None]:
        # A policy asks for it before it decides, and what it has decided needs it again.
        return {}


def shown(weighed: WeighedPlan, running: WeighedPlan, why: str) -> Mapping[str, object]:
    """Show a plan as an event does."""
    return {
        "plan": weighed.plan,
        "cost": significant(weighed.cost),
        "low": significant(weighed.low),
        "high": significant(weighed.high),
        "memory": round(weighed.memory),
        "share": round(weighed.cost / running.cost, 4) if running.cost else None,
        "why": why,
    }


def significant(value: float) -> float:
    """Round a figure to four digits, as events show it: a slow stream's costs are small fractions of a nanosecond.

    >>> significant(0.0123456), significant(987654.3)
    (0.01235, 987700.0)
    """
    return float(f"{value:.4g}")


def kept_by_others(manifest: Manifest, query: str) -> Mapping[Sources, Plan]:
    """Find the states that other plans keep: by the user's aliases the sources, with the subplan that makes the state
    there.

    Equal signatures are equal contents. A query on its way to another plan is left out: what it keeps it may give up.
    """
    own, group = unit_of(manifest, query), manifest.queries[query].group
    aliases = {label: alias for alias, label in own.labels_of(query).items()}
    found: dict[Sources, Plan] = {}
    for other in compile_program(manifest, group, {}).units:
        moves = any(manifest.queries[name].migrations for name in other.queries)
        if other.name != own.name and not moves and not set(own.streams).isdisjoint(other.streams):
            for labels, plan in _common(own, other):
                renamed = relabel_plan(plan, {label: aliases[label] for label in labels})
                found.setdefault(frozenset(aliases[label] for label in labels), renamed)
    return found


def _common(own: Unit, other: Unit) -> Iterator[tuple[Sources, Plan]]:
    # Except that of the whole query. What another form than a tree makes, such as STAIRs, can be no part of a tree.
    box, labels = other.box(other.plan), frozenset(source.alias for source in own.query.sources)
    joins = {held: plan for held, plan in subplans(box.plan).items() if isinstance(plan, Join)}
    parts = {**joins, **{frozenset({alias}): Leaf(alias) for alias in box.plan.aliases()}}
    for spec in other.requirements(box).specs:
        held = frozenset(spec.labels)
        if held < labels and held in parts:
            mine = own.binding.state(held, "scan") if len(held) > 1 else own.binding.rows()[spec.labels[0]]
            if mine.id.same_content(spec.id):
                yield held, parts[held]
