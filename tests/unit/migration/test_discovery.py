"""Strategies are found by looking."""

from __future__ import annotations

import pkgutil

import pytest

import midstream as ms
import midstream.migration as room
from midstream.migration.strategy_contract import Strategy, discovered, strategies, strategy
from midstream.model.errors import StrategyError


def test_every_strategy_lives_in_the_file_of_its_name() -> None:
    assert set(strategies()) <= {module.name for module in pkgutil.iter_modules(room.__path__)}
    assert all(type(found).__module__ == f"midstream.migration.{name}" for name, found in discovered().items())


def test_names_are_sorted_and_listed_in_errors() -> None:
    assert list(strategies()) == sorted(strategies())
    assert {"moving_state", "pause_drain_resume"} <= set(strategies())
    assert ms.strategies() == strategies()


def test_a_strategy_by_its_name() -> None:
    found = strategy("moving_state")
    assert isinstance(found, Strategy)
    assert found.name == "moving_state"
    assert strategy("moving_state") is found


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(StrategyError) as caught:
        strategy("beam")
    assert caught.value.place == "migrate"
    assert all(name in caught.value.remedy for name in strategies())
