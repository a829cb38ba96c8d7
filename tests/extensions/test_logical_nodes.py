"""A logical node of another distribution is one file, with its operator in another: QUALIFY asks for it by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream as ms
from midstream.operators.result_compiler import compilers
from tests.extension import distribution

NODE = '''
"""One result of so many."""

from dataclasses import dataclass, replace

from midstream.expr.expression import Expression, Literal
from midstream.sql.qualified import QualifyNode
from midstream.model.errors import LanguageError


@dataclass(frozen=True)
class OneIn(QualifyNode):
    """The results whose key is a multiple of `count`."""

    count: int
    key: Expression

    name = "one_in"

    @classmethod
    def of(cls, arguments):
        if len(arguments) != 2 or not isinstance(arguments[0], Literal):
            raise LanguageError("it takes a number and a key", remedy="write ONE_IN(10, A.k)")
        return cls(arguments[0].value, arguments[1])

    def renamed(self, rename, names):
        return replace(self, key=rename(self.key))

    def read(self):
        return [self.key]
'''
OPERATOR = '''
"""The operator of one result of so many."""

import numpy as np

from midstream.expr.evaluate import evaluate
from midstream.model.window import EVENT_TIME
from midstream.operators.project import ProjectOperator
from midstream.operators.result_compiler import ResultCompiler
from midstream.runtime.result_operator import with_time
from one_in_node import OneIn


class OneInOperator(ProjectOperator):
    def evaluated(self, lane, results):
        read = with_time(lane.reader(self.rows, results), results.valid_from[EVENT_TIME])
        keys = evaluate(self.query.on_top.key, read, len(results)).to_numpy(zero_copy_only=False)
        return super().evaluated(lane, results.take(np.flatnonzero(keys % self.query.on_top.count == 0)))


class OneInCompiler(ResultCompiler):
    name = "one_in"
    node = OneIn

    def compile(self, asked):
        return OneInOperator(asked.query, asked.binding.rows(), (asked.joined(),))
'''
JOIN = "SELECT A.k, A.v, B.w FROM A, B WHERE A.k = B.k"
QUERY = f"{JOIN} QUALIFY ONE_IN(3, A.v + B.w) WINDOW 4 SECONDS"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another package's node and operator while its distribution is installed."""
    declared = {
        "midstream.logical_nodes": {"one_in": "one_in_node:OneIn"},
        "midstream.result_operators": {"one_in": "one_in_operator:OneInCompiler"},
    }
    path = distribution(tmp_path / "another", declared, one_in_node=NODE, one_in_operator=OPERATOR)
    monkeypatch.syspath_prepend(path)
    compilers.cache_clear()
    yield
    compilers.cache_clear()
    for name in ("one_in_node", "one_in_operator"):
        sys.modules.pop(name, None)


def started(checkpoint: Path | None = None) -> ms.Engine:
    engine = ms.Engine() if checkpoint is None else ms.Engine(checkpoint=checkpoint)
    engine.create_stream("A", "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.create_stream("B", "k BIGINT, w BIGINT, ts TIMESTAMP", timestamp="ts")
    return engine


def pushed(engine: ms.Engine, steps: range) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for second in steps:
        moment = f"2026-01-01T00:00:{second:02d}"
        rows = {
            "A": [{"k": k, "v": k * second, "ts": moment} for k in range(3)],
            "B": [{"k": k, "w": k + second, "ts": moment} for k in range(3)],
        }
        answer = engine.push(rows)["q"]
        found += zip(answer.column("v").to_pylist(), answer.column("w").to_pylist(), strict=True)
    return found


def expected(steps: range) -> list[tuple[int, int]]:
    pairs = [
        (k * a, k + b) for k in range(3) for a in steps for b in steps if abs(a - b) <= 4 and (k * a + k + b) % 3 == 0
    ]
    return sorted(pairs)


@pytest.mark.usefixtures("installed")
def test_a_node_of_another_package_answers() -> None:
    engine = started()
    engine.add_query("q", QUERY)
    assert sorted(pushed(engine, range(9))) == expected(range(9))


@pytest.mark.usefixtures("installed")
def test_it_migrates_and_a_restart_takes_it_up(tmp_path: Path) -> None:
    with started(tmp_path / "ckpt") as engine:
        engine.add_query("q", QUERY)
        found = pushed(engine, range(4))
        engine.migrate("q", "(B A)", strategy="moving_state")
        found += pushed(engine, range(4, 6))
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        found += pushed(engine, range(6, 9))
    assert sorted(found) == expected(range(9))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{JOIN} QUALIFY ONE_IN(A.v) WINDOW 4 SECONDS", r"ONE_IN: it takes a number and a key \(at line 1"),
        (f"{JOIN} QUALIFY TWO_IN(3, A.v) WINDOW 4 SECONDS", r"unknown function 'TWO_IN' in QUALIFY.*or one of ONE_IN"),
        (
            "SELECT A.k, COUNT(*) FROM A GROUP BY A.k QUALIFY ONE_IN(3, A.k) WINDOW 4 SECONDS EVERY 1 SECOND",
            r"QUALIFY ONE_IN\(\) cannot be in a query with an aggregate",
        ),
        (
            "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k QUALIFY ONE_IN(3, A.k) WINDOW 4 SECONDS",
            r"QUALIFY ONE_IN\(\) cannot be in a query with an outer join",
        ),
        (
            "DSTREAM (SELECT A.k FROM A [RANGE 4 SECONDS] QUALIFY ONE_IN(3, A.k))",
            r"QUALIFY ONE_IN\(\) cannot be in a query with ISTREAM, DSTREAM or RSTREAM",
        ),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(ms.MidstreamError, match=said):
        started().add_query("q", text)


@pytest.mark.usefixtures("installed")
def test_a_subquery_has_one_of_its_own() -> None:
    engine = started()
    engine.add_query("q", f"SELECT x.v, x.w FROM ({JOIN} QUALIFY ONE_IN(3, A.v + B.w) WINDOW 4 SECONDS) x")
    assert sorted(pushed(engine, range(9))) == expected(range(9))


def test_without_the_package_its_name_is_unknown() -> None:
    with pytest.raises(ms.MidstreamError, match="unknown function 'ONE_IN' in QUALIFY"):
        started().add_query("q", QUERY)
