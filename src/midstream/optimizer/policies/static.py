"""RATE: the best plan is chosen once, by what the streams are like then (OM, 002 §5, after Viglas and Naughton 2002).

The paper's gets its rates from elsewhere before it begins; ours takes those of the first review.
"""

from __future__ import annotations

from typing_extensions import override

from midstream.optimizer.policies.policy_contract import Decision, Policy, Review


class Static(Policy):
    """Chooses the cheapest plan at the first review that knows the streams, and keeps to it forever."""

    name = "static"

    @override
    def decide(self, review: Review) -> Decision:
        known = all(source.rate > 0 for source in review.statistics.sources.values())
        if "chosen" not in review.memory and not known:
            return Decision(None, "a stream has had no rows yet", review.memory)
        best = min((review.running, *review.alternatives), key=lambda one: one.cost)
        chosen = review.memory.get("chosen", best.plan)
        memory = {"chosen": chosen}
        if chosen == review.running.plan:
            return Decision(None, "it runs by the plan that was chosen once", memory)
        if review.weighed(chosen) is None:
            return Decision(None, "the allowed plans do not include the plan that was chosen once", memory)
        return Decision(chosen, "the cheapest plan by the first figures", memory)
