"""The audit of the optimizer: every policy that is discovered has its conformance cases, its figure and its scenarios.

On Spark it has a job whose driver is killed as well. A new policy is found without being listed anywhere, and fails
here until it has all four.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.optimizer.contestants import every_policy
from benchmarks.optimizer.scenarios import SCENARIOS
from midstream.lab.figure import figures
from midstream.optimizer.policies.policy_contract import policies
from tests.optimizer import test_policies as conformance
from tests.spark import test_decisions_replay as on_spark

SECTION_B = {"static", "random", "eddy", "sel_lambda_chart", "lambda_chart", "adaptive"}
"""What OM compares, and ours: the systems page's section B."""

KINDS = {"drifting", "steady", "flapping"}

audited = pytest.mark.parametrize("name", policies())


def drawn(name: str) -> list[str]:
    """The figures of a policy."""
    return [figure.name for figure in figures().values() if name in figure.policies]


def cases(name: str) -> int:
    """How many random cases the conformance suite draws for a policy."""
    return conformance.CASES if name in named(conformance.test_it_keeps_every_answer_and_to_what_is_allowed) else 0


def kills(name: str) -> int:
    """How often the driver of a job on Spark is killed while a policy decides."""
    return (
        len(on_spark.KILLS) if name in named(on_spark.test_every_policy_decides_the_same_wherever_it_is_killed) else 0
    )


def named(test: Any) -> list[str]:
    """What a test is called with."""
    return next(list(mark.args[1]) for mark in test.pytestmark if mark.name == "parametrize")


def kinds(name: str) -> set[str]:
    """The kinds of scenarios that a policy competes in: all contestants compete in all of them."""
    return {scenario.kind for scenario in SCENARIOS.values() if name in every_policy()}


def test_the_field_s_policies_are_all_there() -> None:
    assert policies().keys() >= SECTION_B


@audited
def test_it_has_conformance_cases(name: str) -> None:
    assert cases(name) > 0


@audited
def test_a_job_on_spark_is_killed_while_it_decides(name: str) -> None:
    assert kills(name) > 0


@audited
def test_it_has_a_figure(name: str) -> None:
    assert drawn(name), "no figure of the lab has it among its policies"


@audited
def test_it_has_benchmark_scenarios(name: str) -> None:
    assert kinds(name) == KINDS


def test_figures_know_no_policy_that_is_not_there() -> None:
    """A name that nobody answers to would pass unseen."""
    assert not {name for figure in figures().values() for name in figure.policies} - policies().keys()


def test_every_kind_of_scenario_is_there_and_says_so() -> None:
    assert {scenario.kind for scenario in SCENARIOS.values()} == KINDS
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())
    assert {len(scenario.feeds) for scenario in SCENARIOS.values()} >= {3, 4, 5, 8}


def test_the_audit_can_fail() -> None:
    """Of a policy that has nothing, everything is missed."""
    assert (cases("oracle"), kills("oracle"), drawn("oracle"), kinds("oracle")) == (0, 0, [], set())
