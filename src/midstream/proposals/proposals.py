"""The plans that wait for a user's answer."""

from __future__ import annotations

from dataclasses import replace

from midstream.logical.query import query_of
from midstream.model.errors import QueryError
from midstream.model.events import LanesProposalClosed, ProposalClosed
from midstream.model.lane_choice import LaneOptimization, LaneProposal
from midstream.model.manifest import Manifest
from midstream.model.optimization import Proposal, ProposalState
from midstream.plan.decompose import same_shape
from midstream.plan.notation import parse_plan
from midstream.proposals.plan_group import PlanGroup, plan_group, plan_groups, plan_of_lead, split_allowed
from midstream.units.draft import Draft


def answer_proposal(draft: Draft, lanes: int, state: ProposalState) -> None:
    """Approve or reject the number of lanes that is proposed; raises where it is not the one that waits."""
    manifest = draft.manifest
    kept, proposal = manifest.lane_optimization, manifest.lane_optimization.proposal
    anew = "wait for the next review; see midstream status CKPT"
    if proposal is None:
        raise QueryError("the optimizer proposes no other number of lanes", place="lanes", remedy=anew)
    if proposal.state != "waits":
        why = f": {proposal.reason}" if proposal.reason else ""
        said = f"the proposal of {proposal.lanes} lanes was {proposal.state} in step {proposal.step}{why}"
        raise QueryError(said, place="lanes", remedy=anew)
    if proposal.old != manifest.lanes:
        said = f"the job has {manifest.lanes} lanes instead of {proposal.old} since {proposal.lanes} were proposed"
        raise QueryError(said, place="lanes", remedy=anew)
    if proposal.lanes != lanes:
        raise QueryError(
            f"the proposal is {proposal.lanes} lanes, not {lanes}",
            place="lanes",
            remedy=f"use {proposal.lanes}; {anew}",
        )
    keep_lanes(draft, closed_lanes(draft, kept, proposal, state, ""))


def withdraw_lanes(draft: Draft, reason: str) -> None:
    """Withdraw the number of lanes that is proposed, if one waits for an answer."""
    kept = draft.manifest.lane_optimization
    if kept.proposal is not None and kept.proposal.state == "waits":
        keep_lanes(draft, closed_lanes(draft, kept, kept.proposal, "withdrawn", reason))


def closed_lanes(
    draft: Draft, kept: LaneOptimization, proposal: LaneProposal, state: ProposalState, reason: str
) -> LaneOptimization:
    """Record the end of a proposal as an event, and return what is kept of it."""
    step = draft.manifest.step
    draft.events.append(LanesProposalClosed(step, proposal.lanes, state, reason))
    return replace(kept, proposal=replace(proposal, state=state, step=step, reason=reason))


def keep_lanes(draft: Draft, kept: LaneOptimization) -> None:
    """Keep what is known of the number of lanes in the manifest of a draft."""
    draft.manifest = replace(draft.manifest, lane_optimization=kept)


def waiting(manifest: Manifest, query: str, plan: str = "") -> tuple[str, Proposal]:
    """Find the query that a proposal is kept with, and the proposal, in its aliases; raises where none waits.

    Where a `plan` is named, it must be the proposed one.
    """
    one = plan_group(manifest, query)
    proposal, place = one.kept.proposal, f"query {query}"
    anew = "wait for the next review; see midstream plans CKPT " + query
    if proposal is None:
        raise QueryError(f"the optimizer proposes no other plan for query {query!r}", place=place, remedy=anew)
    if proposal.state != "waits":
        why = f": {proposal.reason}" if proposal.reason else ""
        said = f"the proposal of {proposal.plan} for query {query!r} was {proposal.state} in step"
        raise QueryError(f"{said} {proposal.step}{why}", place=place, remedy=anew)
    if proposal.queries and proposal.queries != one.queries:
        said = (
            f"{proposal.plan} was proposed for {_names(proposal.queries)}, but {_names(one.queries)} would move by now"
        )
        raise QueryError(said, place=place, remedy=anew)
    if reason := _forbidden(manifest, one, proposal):
        raise QueryError(
            f"the optimizer no longer proposes {proposal.plan} for query {query!r}: {reason}", place=place, remedy=anew
        )
    entry = manifest.queries[one.lead]
    if entry.plan != proposal.old:
        said = f"query {query!r} has moved from {proposal.old} to {entry.plan} since {proposal.plan} was proposed"
        raise QueryError(said, place=place, remedy=anew)
    if plan and plan_of_lead(manifest, query, one.lead, plan) != proposal.plan:
        raise QueryError(
            f"the proposal for query {query!r} is now {proposal.plan}, not {plan}",
            place=place,
            remedy=f"approve that proposal, or reject it; {anew}",
        )
    return one.lead, proposal


def close(draft: Draft, query: str, lead: str, state: ProposalState, reason: str = "") -> None:
    """Record that a proposal is answered for a query, or withdrawn; it is kept with the lead."""
    step, kept = draft.manifest.step, draft.manifest.optimizations[lead]
    assert kept.proposal is not None
    proposal = replace(kept.proposal, state=state, step=step, reason=reason)
    optimizations = {**draft.manifest.optimizations, lead: replace(kept, proposal=proposal)}
    draft.manifest = replace(draft.manifest, optimizations=optimizations)
    draft.events.append(ProposalClosed(step, query, proposal.plan, state, reason))


def withdraw(draft: Draft, query: str, reason: str) -> None:
    """Withdraw what is proposed for a query, if anything waits for an answer."""
    one = plan_group(draft.manifest, query)
    if one.kept.proposal is not None and one.kept.proposal.state == "waits":
        close(draft, query, one.lead, "withdrawn", reason)


def withdraw_without_own_settings(draft: Draft, reason: str) -> None:
    """Withdraw what is proposed where the job's settings count for one of the queries that would move."""
    for one in plan_groups(draft.manifest):
        proposal, kept = one.kept.proposal, draft.manifest.optimizations
        if proposal is None or proposal.state != "waits":
            continue
        if any(name not in kept or kept[name].settings is None for name in one.queries):
            close(draft, one.lead, one.lead, "withdrawn", reason)


def withdraw_of_other_groups(draft: Draft) -> None:
    """Withdraw what was proposed for queries that no longer move together, or no longer alone."""
    for name, kept in draft.manifest.optimizations.items():
        proposal = kept.proposal
        if proposal is None or proposal.state != "waits" or not proposal.queries:
            continue
        one = plan_group(draft.manifest, name)
        if one.queries != proposal.queries:
            reason = f"it was proposed for {_names(proposal.queries)}, but {_names(one.queries)} would move by now"
            close(draft, name, name, "withdrawn", reason)


def _forbidden(manifest: Manifest, one: PlanGroup, proposal: Proposal) -> str:
    # Empty where it may be chosen.
    if one.settings.mode == "off":
        return "the optimizer is off"
    if one.conflict:
        return one.conflict
    plans, strategies = split_allowed(one.settings.allow, query_of(manifest.queries[one.lead]))
    chosen = parse_plan(proposal.plan, query_of(manifest.queries[one.lead]))
    if plans and not any(same_shape(chosen, plan) for plan in plans):
        return "it is not allowed"
    return f"{proposal.strategy} is not allowed" if strategies and proposal.strategy not in strategies else ""


def _names(queries: tuple[str, ...]) -> str:
    return ", ".join(queries)
