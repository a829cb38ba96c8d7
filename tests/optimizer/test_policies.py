"""Every policy that is discovered keeps every answer, and to what it is allowed; once more it decides the same."""

from __future__ import annotations

from collections import Counter

import pytest
from typing_extensions import override

from midstream.optimizer.policies.policy_contract import Decision, Policy, Review, policies
from midstream.testing import check_policy
from tests.drawing import FIFTHS, SOAK

CASES = (3000 if SOAK else 150) // len(FIFTHS)

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


SEEN: Counter[str] = Counter()
"""By policy how many cases it had, and how often it switched in them."""


@pytest.mark.parametrize("name", policies())
def test_it_keeps_every_answer_and_to_what_is_allowed(fifth: int, name: str) -> None:
    SEEN[f"{name} switched"] += check_policy(type(policies()[name]), cases=CASES, seed=fifth * CASES)
    SEEN[name] += CASES


def test_every_policy_switches() -> None:
    """The test above would be green of policies that decide nothing."""
    assert {name for name in policies() if SEEN[f"{name} switched"] <= SEEN[name] / 30} == set(), SEEN


class Stubborn(Policy):
    """Decides for a plan that was never weighed, and remembers what is not a JSON value of a review."""

    name = "stubborn"

    @override
    def decide(self, review: Review) -> Decision:
        return Decision("((A C) B)", "because", {"seen": review.step})


class Forgetful(Policy):
    """Decides by what it has done before in this process."""

    name = "forgetful"
    times = 0

    @override
    def decide(self, review: Review) -> Decision:
        Forgetful.times += 1
        best = review.alternatives[Forgetful.times % 2] if len(review.alternatives) > 1 else None
        return Decision(None if best is None else best.plan, f"decision {Forgetful.times}")


def test_a_plan_that_is_not_allowed_is_not_taken() -> None:
    check_policy(Stubborn, cases=10)


def test_a_policy_that_is_not_pure_is_found_out() -> None:
    with pytest.raises(AssertionError, match="once more brought other events"):
        check_policy(Forgetful, cases=10)
