"""Eddies: a decision per batch of rows, taken inside the plan (Avnur and Hellerstein 2000; OM, 002 §5; JISC §3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.optimizer.policies.policy_contract import Decision, Policy, Review
from midstream.plan.notation import word_before
from midstream.plan.tree import Eddy

EDDY = word_before(Eddy(("A", "B")).notation())  # the word that an eddy is written with


class EddyPolicy(Policy):
    """Moves to the eddy over the query's sources once; from then on the eddy routes each batch by what it has seen."""

    name = "eddy"

    @override
    def plans(self, aliases: Sequence[str]) -> tuple[str, ...]:
        return (Eddy(tuple(aliases)).notation(),)

    @override
    def decide(self, review: Review) -> Decision:
        if word_before(review.running.plan) == EDDY:
            return Decision(None, "the eddy decides for each batch")
        found = next((one.plan for one in review.alternatives if word_before(one.plan) == EDDY), None)
        return Decision(found, "no eddy is allowed" if found is None else "an eddy decides for each batch")
