"""A result operator of another distribution answers the queries that its compiler takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream as ms
from midstream.operators.result_compiler import compilers
from tests.extension import distribution

FIRST_ROWS = '''
"""The best rows of each group, without those whose value is below nothing."""

import pyarrow.compute as pc

from midstream.logical.query import Aggregate
from midstream.operators.result_compiler import ResultCompiler
from midstream.operators.top_n import TopNOperator


class Positive(TopNOperator):
    def values(self, read, count):
        return [pc.abs(column) for column in super().values(read, count)]


class PositiveCompiler(ResultCompiler):
    name = "positive"
    node = Aggregate

    def takes(self, asked):
        return asked.query.on_top.top is not None

    def compile(self, asked):
        return Positive(asked.query, asked.binding.rows(), (asked.joined(),))
'''
QUERY = (
    "SELECT v FROM A [RANGE 9 SECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 1 EVERY 1 SECOND"
)


@pytest.fixture
def positive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another package's compiler while its distribution is installed."""
    declared = {"midstream.result_operators": {"positive": "positive:PositiveCompiler"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, positive=FIRST_ROWS))
    compilers.cache_clear()
    yield
    compilers.cache_clear()


def answer() -> list[int]:
    engine = ms.Engine()
    engine.create_stream("A", "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", QUERY)
    engine.push({"A": [{"k": 1, "v": -5, "ts": "2026-01-01T00:00:00.1"}]})
    return engine.push({"A": [{"k": 2, "v": -7, "ts": "2026-01-01T00:00:01.5"}]})["q"].column("v").to_pylist()


def test_without_it_the_house_s_operator_answers() -> None:
    assert answer() == [-5]


@pytest.mark.usefixtures("positive")
def test_another_package_s_operator_goes_before_the_house_s() -> None:
    assert answer() == [5]
