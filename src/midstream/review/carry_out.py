"""What a review leads to: an event, a proposal, or a migration that begins with the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from midstream.commands.migrate import Migrate
from midstream.model.codec import encode
from midstream.model.errors import MidstreamError
from midstream.model.events import PlanReviewed, ProposalClosed, ReviewFailed
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, Proposal
from midstream.model.words import brief_text
from midstream.optimizer.decayed_mean import DecayedMean
from midstream.optimizer.policies.policy_contract import Decision, SwitchCost
from midstream.proposals.plan_group import PlanGroup
from midstream.proposals.proposals import withdraw_of_other_groups
from midstream.review.review import BETWEEN, SHOWN, Reviewing, shown, significant
from midstream.review.review_price import trees_at_once, usual_step
from midstream.review.schedule import in_turn, look, paid
from midstream.runtime import checks
from midstream.state.chunk_store import ChunkStore
from midstream.units.draft import Draft

DECIDED = {"suggest": "suggest", "ask": "ask", "auto": "switch"}  # what a decision to move to another plan is, by mode
LEAST = 0.03  # what saves a smaller share of a step than this is not suggested

ALIKE = 0.05
"""A plan that saves a greater share of the present cost than the proposed one by no more than this is not proposed."""

CHANGED = 1 / 3  # a proposal whose gain has changed by less than this share is not reported again

INSISTS = 0.5
"""Once a plan was rejected, none is proposed until it costs at most this share of what the rejected one would have."""


FADING = 0.9  # what a plan was foreseen to do beyond others counts for so much at the next review


def review(draft: Draft, store: ChunkStore, exceeded: Mapping[CounterKey, int] | None = None) -> Draft:
    """Do the reviews that are due in a step, after the commands of users."""
    withdraw_of_other_groups(draft)
    draft.manifest, wanted = look(draft.manifest, exceeded)
    for candidate in in_turn(draft.manifest, wanted) if wanted else ():
        one, now = candidate.one, candidate.now
        if draft.migrations.get(draft.manifest.queries[one.lead].unit(one.lead)):
            continue
        attempt = draft.copy()
        try:
            limit = trees_at_once(draft.manifest, one, in_a_hurry=bool(exceeded))
            _review(attempt, Reviewing(draft.manifest, one, now, store, limit, exceeded))
        except MidstreamError as error:
            _failed(draft, one, now, str(error))
        except MemoryError:
            raise
        except Exception as fault:
            # Answers do not depend on reviews: a fault of one must not keep a step from being done.
            if checks.are_on():
                raise
            _failed(draft, one, now, f"a fault of the review, please report it: {type(fault).__name__}: {fault}")
        else:
            draft = attempt
    return draft


def forget_paces(manifest: Manifest) -> Manifest:
    """Forget the pace of every plan: users have said something that may change what is counted."""
    kept = manifest.optimizations.items()
    return replace(manifest, optimizations={name: replace(one, counted=(), spared=None) for name, one in kept})


def _failed(draft: Draft, one: PlanGroup, now: int, reason: str) -> None:
    # The queries run on by their plan until the next review.
    keep(draft, one.lead, _reviewed(one.kept, draft.manifest.step, now))
    draft.events.append(ReviewFailed(draft.manifest.step, one.lead, reason))


def _reviewed(kept: Optimization, step: int, now: int) -> Optimization:
    # Bursts that were known before are no reason for a review, for some time.
    spared = max(kept.pace, FADING * (kept.spared or 0.0))
    return replace(kept, reviewed=now, reviewed_in=step, searched="", at=0, tried=0, excess=0.0, spared=spared)


def keep(draft: Draft, query: str, kept: Optimization) -> None:
    """Keep something of a query for the optimizer in the manifest."""
    draft.manifest = replace(draft.manifest, optimizations={**draft.manifest.optimizations, query: kept})


def _review(draft: Draft, reviewing: Reviewing) -> None:
    one, search = reviewing.one, reviewing.plans.searched
    draft.manifest = paid(draft.manifest, one, reviewing.price)
    if search is not None and not search.done:
        found = BETWEEN.join([plan.notation() for plan in (search.tree, *search.others)])
        goes_on = replace(one.kept, searched=found, at=search.at, tried=search.tried, excess=0.0)
        keep(draft, one.lead, goes_on)
        return
    decision, cost = decide(reviewing)
    entry = draft.manifest.queries[one.lead]
    decided = "stay" if decision.plan is None else DECIDED[one.settings.mode]
    kept = replace(
        _reviewed(one.kept, draft.manifest.step, reviewing.now),
        plan=entry.plan,
        comparisons=entry.counters.comparisons,
        price=reviewing.price,
        policy=one.settings.policy,
        memory=dict(decision.memory),
        hurdle=decision.hurdle,
        decision=decided,
        reason=decision.reason,
        foreseen=reviewing.running.cost,
        real=reviewing.real,
    )
    if decided == "switch" and (chosen := reviewing.review.weighed(decision.plan or "")) is not None:
        # What the new plan does beyond what it is taken for calls for a review. While rows become more, the last steps
        # did more than the figures say: of that it is taken to do its share, too.
        pace, before, after = one.kept.pace, reviewing.running.work, chosen.work
        spared = max(min(pace - (before - after), pace * after / max(before, 1.0)), 0.0)
        kept = replace(kept, counted=(), pace=spared, spared=spared)
    if decision.regret and one.settings.counts_time_alone:
        kept = replace(kept, spared=max(one.kept.pace - decision.regret, 0.0))
    if not _is_reported(one, decision, reviewing):
        draft.events.append(_event(reviewing, decision, decided, cost))
    keep(draft, one.lead, _proposed(draft, reviewing, kept, decision, cost))
    if decided == "switch" and decision.plan is not None and cost is not None:
        # By the figures of the review: what the move is foreseen to cost is not sampled again.
        moved = Migrate(one.lead, decision.plan, cost.strategy, together=True)
        moved.begin(draft, reviewing.estimate.statistics)


def decide(reviewing: Reviewing) -> tuple[Decision, SwitchCost | None]:
    """Decide as the policy does, where users would feel it and have not refused it, and foresee what a move costs."""
    decision, cost = reviewing.decide(), None
    if decision.plan == reviewing.running.plan:
        decision = replace(decision, plan=None)
    if decision.plan is not None and reviewing.review.weighed(decision.plan) is None:
        decision = replace(decision, plan=None, reason=f"the policy chose {decision.plan}, which is not allowed")
    decision = _as_proposed(decision, reviewing)
    if decision.plan is not None and (cost := reviewing.predict(decision.plan)) is None:
        decision = replace(decision, plan=None, reason=f"no allowed strategy can migrate it to {decision.plan}")
    return _felt(_unless_rejected(reviewing.one, decision, reviewing), reviewing), cost


def _as_proposed(decision: Decision, reviewing: Reviewing) -> Decision:
    # A plan that is proposed already stays where another one is hardly better.
    known, running = reviewing.one.kept.proposal, reviewing.running
    if decision.plan is None or known is None or known.state != "waits" or reviewing.one.settings.mode == "auto":
        return decision
    chosen, proposed = (reviewing.review.weighed(plan) for plan in (decision.plan, known.plan))
    if known.old != running.plan or chosen is None or proposed is None:
        return decision
    return replace(decision, plan=known.plan) if proposed.cost - chosen.cost <= ALIKE * running.cost else decision


def _unless_rejected(one: PlanGroup, decision: Decision, reviewing: Reviewing) -> Decision:
    # A user may have refused to leave the running plan: then much more must be gained by now.
    proposal = one.kept.proposal
    if decision.plan is None or proposal is None or proposal.state != "rejected" or one.settings.mode == "auto":
        return decision
    if proposal.old != reviewing.running.plan or 1 - _gain(reviewing, decision.plan) <= INSISTS * (1 - proposal.gain):
        return decision
    reason = f"{proposal.plan} was rejected in step {proposal.step}, and {decision.plan} does not save much more"
    return replace(decision, plan=None, reason=reason)


def _felt(decision: Decision, reviewing: Reviewing) -> Decision:
    # Where users are asked, a gain that is too little to be felt is not a reason to move.
    chosen = None if decision.plan is None else reviewing.review.weighed(decision.plan)
    if chosen is None:
        return decision
    saved = (reviewing.running.work - chosen.work) * reviewing.estimate.statistics.step
    usual = max(usual_step(reviewing.manifest), reviewing.running.work * reviewing.estimate.statistics.step)
    share, lanes = saved / usual, reviewing.manifest.lane_optimization
    if 0 <= share < LEAST and reviewing.one.settings.mode != "auto" and reviewing.one.settings.counts_time_alone:
        return replace(
            decision, plan=None, reason=f"{chosen.plan} saves {share:.1%} of a step, which nobody would feel"
        )
    took = DecayedMean(lanes.load.took).value if lanes.load.took else usual / 1e9
    before, after = (brief_text(seconds) for seconds in (took, took * (1 - share)))
    return replace(decision, reason=f"a step takes {before}, would take {after}: {decision.reason}")


def _gain(reviewing: Reviewing, plan: str) -> float:
    chosen, running = reviewing.review.weighed(plan), reviewing.running
    return 1 - chosen.cost / running.cost if chosen is not None and running.cost else 0.0


def _is_reported(one: PlanGroup, decision: Decision, reviewing: Reviewing) -> bool:
    # With about this gain.
    known = one.kept.proposal
    if decision.plan is None or known is None or known.state != "waits" or one.settings.mode == "auto":
        return False
    same = (known.plan, known.old, known.queries) == (decision.plan, reviewing.running.plan, one.queries)
    return same and abs(_gain(reviewing, decision.plan) - known.gain) <= CHANGED * known.gain


def _proposed(
    draft: Draft, reviewing: Reviewing, kept: Optimization, decision: Decision, cost: SwitchCost | None
) -> Optimization:
    # A proposal that waits for an answer in vain is withdrawn.
    before, step = kept.proposal, draft.manifest.step
    waits = before is not None and before.state == "waits"
    asks = decision.plan is not None and cost is not None and reviewing.one.settings.mode != "auto"
    if waits and before is not None and not (asks and (before.plan, before.old) == (decision.plan, kept.plan)):
        reason = f"{decision.plan} is better by now" if asks else decision.reason
        draft.events.append(ProposalClosed(step, reviewing.one.lead, before.plan, "withdrawn", reason))
        kept = replace(kept, proposal=replace(before, state="withdrawn", step=step, reason=reason))
        waits = False
    if not asks or decision.plan is None or cost is None:
        return kept
    if _is_reported(reviewing.one, decision, reviewing):
        return kept
    since = before.step if waits and before is not None else step
    gain = round(_gain(reviewing, decision.plan), 6)
    return replace(
        kept, proposal=Proposal(kept.plan, decision.plan, cost.strategy, gain, since, queries=reviewing.one.queries)
    )


def _event(reviewing: Reviewing, decision: Decision, decided: str, cost: SwitchCost | None) -> PlanReviewed:
    one, running = reviewing.one, reviewing.running
    chosen = decision.plan or ""
    return PlanReviewed(
        reviewing.manifest.step,
        one.lead,
        one.queries,
        one.settings.policy,
        decided,
        decision.reason,
        running.plan,
        chosen,
        answer_text(one.lead, chosen, decided),
        table(reviewing, decision),
        {} if cost is None else encode(cost),
        figures(reviewing),
    )


def answer_text(query: str, plan: str, decided: str) -> str:
    """Tell how a user accepts a plan that was proposed; empty where nothing waits for that."""
    if decided not in ("suggest", "ask"):
        return ""
    yes = f"midstream approve CKPT {query}, or engine.approve({query!r})"
    if decided == "ask":
        return f"{yes}; to say no: midstream reject CKPT {query}, or engine.reject({query!r})"
    auto = f"midstream optimize CKPT {query} --mode auto, or engine.optimize({query!r}, mode='auto')"
    return f"{yes}; to have such moves made from now on: {auto}"


def table(reviewing: Reviewing, decision: Decision, most: int = SHOWN) -> tuple[dict[str, Any], ...]:
    """List the running plan and the best others, the cheapest first, each with why it was taken or lost."""
    running = reviewing.running
    best = reviewing.alternatives[:most]
    if decision.plan is not None and all(one.plan != decision.plan for one in best):
        best += tuple(one for one in reviewing.alternatives if one.plan == decision.plan)
    ranked = sorted((running, *best), key=lambda one: (one.cost, one.plan))
    return tuple(dict(shown(one, running, _why(one.plan, reviewing, decision))) for one in ranked)


def _why(plan: str, reviewing: Reviewing, decision: Decision) -> str:
    running = reviewing.running
    if plan == running.plan:
        return "runs" if decision.plan is None else "runs, and costs more"
    if plan == decision.plan:
        return "chosen"
    weighed = reviewing.review.weighed(plan)
    if weighed is not None and weighed.cost >= running.cost:
        return "costs no less than the running plan"
    best = reviewing.alternatives[0]
    if plan != best.plan:
        return f"costs more than {best.plan}"
    return decision.reason if decision.plan is None else "costs least in this review, but the policy chose another plan"


def figures(reviewing: Reviewing) -> dict[str, Any]:
    """Show what was known: rates and rows of the sources, the cost foreseen and the real one, as the objective
    counts it."""
    known: Mapping[str, Any] = reviewing.estimate.statistics.sources
    return {
        "foreseen": significant(reviewing.running.cost),
        "real": None if (real := reviewing.real) is None else significant(real),
        "sources": {alias: {"rate": significant(one.rate), "rows": round(one.rows, 1)} for alias, one in known.items()},
    }
