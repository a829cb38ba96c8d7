"""A policy of another distribution is one among others, and decides what a query does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream as ms
from midstream.optimizer.policies.policy_contract import policies
from midstream.testing import check_policy
from tests.extension import distribution

DEAREST = '''
"""A policy of another package."""

from midstream.optimizer.policies.policy_contract import Decision, Policy


class Dearest(Policy):
    """Moves to the plan that costs most."""

    name = "dearest"

    def decide(self, review):
        most = max((review.running, *review.alternatives), key=lambda one: one.cost)
        if most.plan == review.running.plan:
            return Decision(None, "it runs by the dearest plan")
        return Decision(most.plan, "the dearest plan")
'''


@pytest.fixture
def dearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The policy's name while its distribution is installed."""
    declared = {"midstream.policies": {"dearest": "dearest:Dearest"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, dearest=DEAREST))
    policies.cache_clear()
    yield "dearest"
    policies.cache_clear()


def test_another_packages_policy_moves_a_query(dearest: str) -> None:
    engine = ms.Engine()
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND A.k = C.k WINDOW 9 SECONDS", plan="((A B) C)")
    engine.optimize("q", dearest, "auto", review="2 seconds", effort=1.0)
    found = 0
    for second in range(30):
        moment = f"2026-01-01T00:00:{second:02d}"
        rows = {"A": range(2), "B": range(2), "C": [0] * 20}
        found += engine.push({name: [{"k": k, "ts": moment} for k in keys] for name, keys in rows.items()})[
            "q"
        ].num_rows
    assert engine.manifest.queries["q"].plan != "((A B) C)"
    assert found == sum(20 for a in range(30) for b in range(30) for c in range(30) if max(a, b, c) - min(a, b, c) <= 9)
    check_policy(type(policies()[dearest]), cases=1)


def test_a_policy_is_gone_with_its_package() -> None:
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.create_stream("B", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    with pytest.raises(ms.QueryError, match="dearest"):
        engine.optimize("q", "dearest")
