"""The number of lanes that waits for a user's answer."""

from __future__ import annotations

from dataclasses import replace

from midstream.model.errors import QueryError
from midstream.model.events import LanesProposalClosed
from midstream.model.lane_choice import LaneOptimization, LaneProposal
from midstream.model.optimization import ProposalState
from midstream.units.draft import Draft


def answer_proposal(draft: Draft, lanes: int, state: ProposalState) -> None:
    """Approve or reject the number of lanes that is proposed; raises where it is not the one that waits."""
    manifest = draft.manifest
    kept, proposal = manifest.lane_optimization, manifest.lane_optimization.proposal
    anew = "the next review proposes what pays then; see midstream status CKPT"
    if proposal is None:
        raise QueryError("no other number of lanes is proposed", place="lanes", remedy=anew)
    if proposal.state != "waits":
        why = f": {proposal.reason}" if proposal.reason else ""
        said = f"{proposal.lanes} lanes are proposed no longer: that was {proposal.state} in step {proposal.step}{why}"
        raise QueryError(said, place="lanes", remedy=anew)
    if proposal.old != manifest.lanes:
        said = f"the job has {manifest.lanes} lanes instead of {proposal.old} since {proposal.lanes} were proposed"
        raise QueryError(said, place="lanes", remedy=anew)
    if proposal.lanes != lanes:
        raise QueryError(
            f"{lanes} lanes are not proposed, but {proposal.lanes}",
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
