"""The review of a job's number of lanes: an event, a proposal, or lanes that are spread again with the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from midstream.commands.rescale import Rescale
from midstream.model.events import LanesReviewed
from midstream.model.lane_choice import LaneLoad, LaneOptimization, LaneProposal
from midstream.model.manifest import Manifest
from midstream.model.words import counted
from midstream.optimizer.decayed_mean import DecayedMean
from midstream.optimizer.lane_advice import GroupLoad, LaneDecision, LaneFigures, changed, decided
from midstream.proposals.plan_group import is_quiet
from midstream.proposals.proposals import closed_lanes, keep_lanes
from midstream.review.carry_out import DECIDED, INSISTS
from midstream.runtime.lane_key import is_single
from midstream.units.draft import Draft
from midstream.units.lane_load import UNITS, is_watched, state_rows


def review_lanes(draft: Draft, lanes_before: int) -> None:
    """Review the number of lanes if it is due: never in a step that changes it, or amid a migration."""
    manifest, kept = draft.manifest, draft.manifest.lane_optimization
    if not is_watched(manifest) or manifest.lanes != lanes_before:
        return
    now, settings = _clock(manifest), manifest.optimizer
    if now is None:
        return
    if kept.reviewed is None:
        keep_lanes(draft, replace(kept, reviewed=now))
        return
    moving = bool(draft.migrations) or any(entry.migrations for entry in manifest.queries.values())
    if moving or now - kept.reviewed < settings.review or is_quiet(settings, now):
        return
    figures = lane_figures(manifest)
    if figures is not None:
        _review(draft, figures, now)


def _clock(manifest: Manifest) -> int | None:
    # The greatest event time that the job has seen.
    return max([one.greatest for one in manifest.progress.values() if one.greatest is not None], default=None)


def lane_figures(manifest: Manifest) -> LaneFigures | None:
    """Read what a manifest says of the lanes; None where nothing was done since the last review."""
    load = manifest.lane_optimization.load
    groups = {lane.group for lane in load.work}
    total = sum(load.work.values())
    if not load.steps or not total:
        return None
    shares = []
    for group in sorted(groups):
        work = [done / total for lane, done in load.work.items() if lane.group == group]
        shares.append(GroupLoad(sum(work), max(work), not is_single(group)))
    state = state_rows(manifest) * (UNITS.insert + UNITS.probe)
    took = DecayedMean(load.took).value if load.took else None
    return LaneFigures(manifest.lanes, load.workers, tuple(shares), total / load.steps, state, took, load.interval)


def _review(draft: Draft, figures: LaneFigures, now: int) -> None:
    manifest, kept = draft.manifest, draft.manifest.lane_optimization
    mode = manifest.optimizer.lanes_mode
    decision, trend = decided(figures, kept.trend)
    decision = _unless_rejected(kept.proposal, decision, figures, mode)
    does = "stay" if decision.lanes is None else DECIDED[mode]
    draft.events.append(
        LanesReviewed(
            manifest.step,
            does,
            decision.reason,
            figures.lanes,
            decision.lanes or 0,
            answer_text(decision.lanes, does),
            shown(figures),
        )
    )
    load: LaneLoad = replace(kept.load, steps=0, work={})
    kept = replace(kept, reviewed=now, load=load, trend=trend, decision=does, reason=decision.reason)
    keep_lanes(draft, _proposed(draft, kept, decision, figures, mode))
    if does == "switch" and decision.lanes is not None:
        kept = draft.manifest.lane_optimization
        keep_lanes(draft, replace(kept, trend=changed(figures, trend, decision.lanes)))
        Rescale(decision.lanes).apply(draft)


def _unless_rejected(
    proposal: LaneProposal | None, decision: LaneDecision, figures: LaneFigures, mode: str
) -> LaneDecision:
    # A user may have refused to leave this number of lanes: then much more must be gained by now.
    if decision.lanes is None or proposal is None or proposal.state != "rejected" or mode == "auto":
        return decision
    if proposal.old != figures.lanes or figures.shortened(decision.lanes) <= INSISTS * (1 - proposal.gain):
        return decision
    rejected = f"{counted(proposal.lanes, 'lane')} were rejected in step {proposal.step}"
    reason = f"{rejected}, and {decision.lanes} would save little more"
    return LaneDecision(None, reason)


def _proposed(
    draft: Draft, kept: LaneOptimization, decision: LaneDecision, figures: LaneFigures, mode: str
) -> LaneOptimization:
    # A proposal that waits for an answer in vain is withdrawn.
    before, step = kept.proposal, draft.manifest.step
    proposes = decision.lanes is not None and mode != "auto"
    since = step
    if before is not None and before.state == "waits":
        if proposes and (before.lanes, before.old) == (decision.lanes, figures.lanes):
            since = before.step
        else:
            kept = closed_lanes(draft, kept, before, "withdrawn", decision.reason)
    if not proposes or decision.lanes is None:
        return kept
    gain = round(1 - figures.shortened(decision.lanes), 6)
    return replace(kept, proposal=LaneProposal(figures.lanes, decision.lanes, gain, since))


def answer_text(lanes: int | None, decided: str) -> str:
    """Tell how a user accepts a number of lanes that was proposed; empty where nothing waits for that."""
    if lanes is None or decided not in ("suggest", "ask"):
        return ""
    yes = f"midstream approve CKPT --lanes {lanes}, or engine.approve(lanes={lanes})"
    if decided == "ask":
        return f"{yes}; to say no: midstream reject CKPT --lanes {lanes}, or engine.reject(lanes={lanes})"
    return yes


def shown(figures: LaneFigures) -> dict[str, Any]:
    """Show the figures as an event does."""
    return {
        "took": None if figures.took is None else round(figures.took, 6),
        "interval": figures.interval,
        "uneven": round(figures.uneven, 4),
        "workers": figures.workers,
        "work": round(figures.work),
        "state": round(figures.state),
    }
