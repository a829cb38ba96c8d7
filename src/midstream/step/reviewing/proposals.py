"""The plans that wait for a user's answer."""

from __future__ import annotations

from dataclasses import replace

from midstream.model.errors import QueryError
from midstream.model.events import ProposalClosed
from midstream.model.manifest import Manifest
from midstream.model.optimization import Proposal, ProposalState
from midstream.step.draft import Draft
from midstream.step.reviewing.group_settings import plan_of_lead
from midstream.step.reviewing.plan_group import plan_group


def waiting(manifest: Manifest, query: str, plan: str = "") -> tuple[str, Proposal]:
    """The query that a proposal is kept with, and the proposal, in its aliases; raises where none waits.

    Where a `plan` is named, it must be the proposed one.
    """
    one = plan_group(manifest, query)
    proposal, place = one.kept.proposal, f"query {query}"
    anew = "the next review proposes what pays then; see midstream plans CKPT " + query
    if proposal is None:
        raise QueryError(f"nothing is proposed for query {query!r}", place=place, remedy=anew)
    if proposal.state != "waits":
        why = f": {proposal.reason}" if proposal.reason else ""
        said = f"{proposal.plan} is proposed for query {query!r} no longer: it was {proposal.state} in step"
        raise QueryError(f"{said} {proposal.step}{why}", place=place, remedy=anew)
    entry = manifest.queries[one.lead]
    if entry.plan != proposal.old:
        said = f"query {query!r} has moved from {proposal.old} to {entry.plan} since {proposal.plan} was proposed"
        raise QueryError(said, place=place, remedy=anew)
    if plan and plan_of_lead(manifest, query, one.lead, plan) != proposal.plan:
        raise QueryError(
            f"{plan} is proposed for query {query!r} no longer, but {proposal.plan}",
            place=place,
            remedy=f"approve that one, or reject it; {anew}",
        )
    return one.lead, proposal


def close(draft: Draft, query: str, lead: str, state: ProposalState, reason: str = "") -> None:
    """Have a proposal answered for a query, or withdrawn; it is kept with the lead."""
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
