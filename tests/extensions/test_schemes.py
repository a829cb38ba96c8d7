"""A scheme of another distribution is one among others; the suite for authors of schemes sees what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.sharing.schemes.scheme_contract import Figures, Scheme, scheme, schemes
from midstream.testing import check_scheme
from tests.extension import distribution
from tests.sharing.draw import case
from tests.sharing.drive import run
from tests.sharing.judge import Judge

OUTERMOST = '''
"""A scheme of another package."""

from midstream.sharing.schemes.scheme_contract import Scheme


class Outermost(Scheme):
    """Cuts off the widest window alone, and delivers by a router."""

    name = "outermost"
    delivery = "router"

    def cuts(self, windows, figures, present):
        return tuple(windows[-2:])
'''


@pytest.fixture
def outermost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The scheme's name while its distribution is installed."""
    declared = {"midstream.schemes": {"outermost": "outermost:Outermost"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, outermost=OUTERMOST))
    schemes.cache_clear()
    yield "outermost"
    schemes.cache_clear()


@pytest.mark.parametrize("seed", range(5))
def test_queries_share_by_another_packages_scheme_and_answer_as_the_oracle(outermost: str, seed: int) -> None:
    drawn = case(seed, modes=(outermost,))
    assert drawn.sharing == outermost
    Judge(drawn, run(drawn)).check()


def test_another_packages_scheme_decides_where_its_chains_are_cut(outermost: str) -> None:
    engine = ms.Engine(sharing=outermost)
    for name in "AB":
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    for size in (5, 10, 20):
        engine.add_query(f"q{size}", f"SELECT A.k FROM A, B WHERE A.k = B.k WINDOW {size} SECONDS")
    engine.push()
    (chain,) = engine.manifest.chains.values()
    assert chain.cuts == (10_000_000, 20_000_000)
    check_scheme(type(scheme(outermost)), cases=1)


def test_a_scheme_is_gone_with_its_package() -> None:
    with pytest.raises(ms.QueryError, match="unknown sharing 'outermost'"):
        ms.Engine(sharing="outermost")


@pytest.mark.parametrize("name", schemes())
def test_every_scheme_passes_the_suite(name: str) -> None:
    check_scheme(type(scheme(name)), cases=2)


class Broken(Scheme):
    name = "broken"

    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return tuple(windows)


class Halves(Broken):
    """Cuts between windows."""

    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return tuple(window // 2 for window in windows)


class Short(Broken):
    """Leaves out the last slice."""

    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return tuple(windows[:-1])


class Fickle(Broken):
    """Says something else every time."""

    def __init__(self) -> None:
        self.asked = 0

    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        self.asked += 1
        return tuple(windows[-1 - self.asked % 2 :])


class Absent(Broken):
    """Needs figures that are not there at first."""

    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        assert figures is not None, "no figures"
        return tuple(windows)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Halves, "not windows, ascending"),
        (Short, "the last is not the widest window"),
        (Fickle, "and then something else"),
        (Absent, "no figures"),
    ],
)
def test_a_scheme_that_breaks_its_contract_is_reported_with_its_case(kind: type[Scheme], message: str) -> None:
    with pytest.raises(AssertionError, match=f"broken, seed 0: .*{message}"):
        check_scheme(kind)
    assert "broken" not in schemes()


def test_an_answer_that_lacks_a_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    push = ms.Engine.push

    def forgetful(engine: ms.Engine, tables: Any) -> dict[str, pa.Table]:
        return {name: table.slice(1) for name, table in push(engine, tables).items()}

    monkeypatch.setattr(ms.Engine, "push", forgetful)
    with pytest.raises(AssertionError, match=r"broken, seed \d: step \d, query q\S+ \(sees .*lacks {\(.*too many {}"):
        check_scheme(Broken)
