"""A way to spread of another distribution is one among others, and its answers are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import midstream as ms
from midstream.ring.spreading import spreadings
from tests.extension import distribution

LAST_NODE = '''
"""A spreading of another package."""

import numpy as np

from midstream.ring.columns import Copies, Visits
from midstream.ring.spreading import Spreading


class ByTime(Spreading):
    """Keeps each row at a node by its time, and sends each partial result to all."""

    name = "by_time"

    def home(self, deployment, label, rows):
        return Copies.single(rows.ts // 1_000_000 % deployment.nodes)

    def visit(self, deployment, partials, label):
        count = len(partials)
        rows = np.repeat(np.arange(count), deployment.nodes)
        since, until = deployment.joinable(partials, label)
        nodes = np.tile(np.arange(deployment.nodes), count)
        return Visits(rows, nodes, since[rows], until[rows])
'''


@pytest.fixture
def by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The spreading's name while its distribution is installed."""
    declared = {"midstream.spreadings": {"by_time": "by_time:ByTime"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, by_time=LAST_NODE))
    spreadings.cache_clear()
    yield "by_time"
    spreadings.cache_clear()


def test_another_packages_spreading_answers_as_one_lane_does(by_time: str) -> None:
    engine = ms.Engine()
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts")
    sql = "SELECT A.v AS a, B.v AS b, C.v AS c FROM A, B, C WHERE A.k <= B.k AND B.k < C.k WINDOW 3 SECONDS"
    engine.add_query("one", sql)
    engine.add_query("many", sql, spread=by_time, nodes=3)
    found = 0
    for second in range(12):
        moment = f"2026-01-01T00:00:{second:02d}"
        rows = {
            name: [{"k": (k * 5 + place + second) % 7, "v": k, "ts": moment} for k in range(4)]
            for place, name in enumerate("ABC")
        }
        answers = engine.push(rows)
        one, many = (answers[name].to_pylist() for name in ("one", "many"))
        assert sorted(map(str, one)) == sorted(map(str, many))
        found += len(one)
    assert found
    assert by_time in engine.explain("many")


def test_a_spreading_is_gone_with_its_package() -> None:
    engine = ms.Engine()
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    with pytest.raises(ms.MidstreamError, match="by_time"):
        engine.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS", spread="by_time", nodes=3)
