"""RAND: a plan is picked at random at every review (OM, 002 §5.2), which is what the others are measured against."""

from __future__ import annotations

from zlib import crc32

from typing_extensions import override

from midstream.optimizer.policies.policy_contract import Decision, Policy, Review


class RandomPolicy(Policy):
    """Picks one of all plans at every review, by seed, query and step: a step that is done again picks the same."""

    name = "random"

    @override
    def decide(self, review: Review) -> Decision:
        plans = sorted({review.running.plan, *(one.plan for one in review.alternatives)})
        picked = plans[crc32(f"{review.seed} {review.query} {review.step}".encode()) % len(plans)]
        if picked == review.running.plan:
            return Decision(None, "the running plan was picked")
        return Decision(picked, f"picked from {len(plans)} plans")
