"""A strategy of another distribution is one among others; the suite for authors of strategies sees what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.migration.gpt import GPT
from midstream.migration.moving_state import MovingState
from midstream.migration.option import Flag
from midstream.migration.strategy_contract import Strategy, discovered
from midstream.operators.ensure import ensure, states_of
from midstream.runtime.box import Box, PlanBox
from midstream.runtime.lane import Lane
from midstream.state.join_state import JoinState
from midstream.testing import check_strategy
from tests.extension import distribution

FROM_SCRATCH = '''
"""A strategy of another package."""

from midstream.migration.strategy_contract import Strategy
from midstream.operators.ensure import ensure, states_of


class FromScratch(Strategy):
    """Computes every state of the new plan from base rows, whatever the old plan has (Zhu 4.1 without matching)."""

    name = "from_scratch"

    def begin(self, old, new, lane, options, mark):
        ensure(lane, states_of(new.roots), event=False)
        return new
'''


@pytest.fixture
def from_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The strategy's name while its distribution is installed."""
    declared = {"midstream.strategies": {"from_scratch": "from_scratch:FromScratch"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, from_scratch=FROM_SCRATCH))
    discovered.cache_clear()
    yield "from_scratch"
    discovered.cache_clear()


def test_a_query_migrates_by_another_packages_strategy(from_scratch: str) -> None:
    assert from_scratch in ms.strategies()
    engine = ms.Engine()
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 9 SECONDS"
    engine.add_query("q", sql, plan="((A B) C)")
    row = pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us"))})
    engine.push({"A": row, "B": row})
    engine.migrate("q", "(A (B C))", strategy=from_scratch)
    assert engine.push({"C": row})["q"].num_rows == 1
    assert engine.explain("q", format="json")["plan"] == "(A (B C))"
    with pytest.raises(ms.StrategyError, match="has no option 'speed'"):
        engine.migrate("q", "((A B) C)", strategy=from_scratch, speed=9)
    check_strategy(type(discovered()[from_scratch]), cases=5)


UNMADE = """
from midstream.migration.under_way.lasting import LastingApart


class Unmade(LastingApart):
    name = "unmade"

    def predict(self, situation):
        return None
"""


def test_a_lasting_strategy_without_its_operator_is_refused_when_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {"midstream.strategies": {"unmade": "unmade:Unmade"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, unmade=UNMADE))
    discovered.cache_clear()
    with pytest.raises(ms.MidstreamError, match="unmade:Unmade is not a valid Strategy"):
        discovered()
    discovered.cache_clear()


def test_a_strategy_is_gone_with_its_package() -> None:
    assert "from_scratch" not in ms.strategies()


@pytest.mark.parametrize("name", discovered())
def test_every_strategy_passes_the_suite(name: str) -> None:
    check_strategy(type(discovered()[name]), cases=3)


class Forgetful(MovingState):
    """Begins the new plan with empty states, as if nothing had been."""

    name = "broken"

    def begin(self, old: Box, new: PlanBox, lane: Lane, options: Mapping[str, Any], mark: str) -> Box:
        ensure(lane, states_of(new.roots), event=False)
        for _, spec in states_of(new.roots):
            lane.put(JoinState(spec, []))
        return new


class Endless(GPT):
    """Never lets the old plan go."""

    name = "broken"

    def transition(self, *given: Any) -> Any:
        made = super().transition(*given)
        object.__setattr__(made, "is_over", lambda lane: False)
        return made


class Odd(MovingState):
    """Has an option that does not take its own default."""

    name = "broken"
    options = (Flag("eager", 7, "a number where there should be none"),)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Forgetful, r"broken, seed \d+: step \d+, SELECT .*lacks"),
        (Endless, r"broken, seed \d+: after all, SELECT .*a migration does not end"),
        (Odd, "option eager does not accept 7: eager is true or false"),
    ],
)
def test_a_strategy_that_breaks_its_contract_is_reported_with_its_case(kind: type[Strategy], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_strategy(kind, cases=30)
    assert "broken" not in discovered()
