"""Who competes: plans that are kept, every policy that is there, and the best schedule of plans.

Policies are discovered, so a new one has its row by being there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from midstream.optimizer.policies.policy_contract import policies

SCHEDULE = "best_schedule"

Kind = Literal["fixed", "policy", "schedule"]


@dataclass(frozen=True)
class Contestant:
    """Someone who decides the plan: `plan` is the first one, `changes` are the steps of a schedule and their plans."""

    name: str
    kind: Kind
    plan: str
    changes: tuple[tuple[int, str], ...] = ()


def every_policy() -> list[str]:
    """The names of all policies.

    >>> "adaptive" in every_policy()
    True
    """
    return list(policies())


def kept(plan: str) -> Contestant:
    """A plan that is kept all the time."""
    return Contestant(plan, "fixed", plan)


def decided_by(policy: str, plan: str) -> Contestant:
    """A policy that begins with a plan."""
    return Contestant(policy, "policy", plan)


def scheduled(plan: str, changes: tuple[tuple[int, str], ...]) -> Contestant:
    """The best schedule of plans."""
    return Contestant(SCHEDULE, "schedule", plan, changes)
