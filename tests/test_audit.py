"""The audit: every strategy that is discovered has its papers, its conformance cases, its figure and its benchmark row.

A new strategy is found without being listed anywhere, and fails here until it has all four.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from random import Random

import pytest

from benchmarks.plan_change.contestants import contestants, every_strategy
from benchmarks.plan_change.load import QUICK
from midstream.lab.figure import figures
from midstream.migration.strategy_contract import discovered
from tests.conformance.forms import Rehearsal
from tests.conformance.trips import trip
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.rows import Shape, draw_rows

SECTION_A = {
    "pause_drain_resume", "moving_state", "parallel_track", "hybmig", "jisc", "gms", "gpt", "ghm", "m_join", "cacq",
    "stairs", "jisc_stairs",
}  # fmt: skip
"""What the field has: the systems page's section A."""

PAPER = re.compile(r"(Zhu|HybMig|JISC|Wang)[^§]{0,20}§\d")

STREAMS = draw_rows(Shape(seed=1, sizes=(2, 2, 2), span=4))[0]
JOIN = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "ABC"),
    (Item("A.u", "a"),),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
SELECTION = QuerySpec((SourceSpec("A", "A"),), (Item("A.u", "a"),), (Condition("A.k > 1", ("A",)),))

audited = pytest.mark.parametrize("name", discovered())


def papers(kind: object) -> list[str]:
    """The paper sections that a strategy names: its class, or the file of its name."""
    found_text = f"{sys.modules[type(kind).__module__].__doc__} {type(kind).__doc__}"
    return [found.group() for found in PAPER.finditer(found_text)]


def carries(name: str) -> bool:
    """Whether the conformance suite finds a query that it migrates by the strategy."""
    drawn = (
        trip(Random(seed), Rehearsal(STREAMS, spec), "q", name, 3) for spec in (JOIN, SELECTION) for seed in (1, 2)
    )
    return any(drawn)


def drawn(name: str) -> list[str]:
    """The figures of a strategy."""
    return [figure.name for figure in figures().values() if name in figure.strategies]


def rows(name: str, strategies: Collection[str]) -> list[str]:
    """The rows of a strategy in the plan-change benchmark."""
    return [row.name for load in QUICK.values() for row in contestants(strategies, load) if row.strategy == name]


def test_the_field_s_migrations_are_all_there() -> None:
    assert discovered().keys() >= SECTION_A


@audited
def test_it_names_its_paper_sections(name: str) -> None:
    assert papers(discovered()[name]), "say in the docstring where it comes from, such as: Zhu §4.1"


@audited
def test_it_has_conformance_cases(name: str) -> None:
    assert carries(name)
    assert all(option.examples() for option in discovered()[name].options), "give the suite values to try"


@audited
def test_it_has_a_figure(name: str) -> None:
    assert drawn(name), "no figure of the lab has it among its strategies"


@audited
def test_it_has_a_row_in_plan_change(name: str) -> None:
    assert rows(name, every_strategy())


def test_figures_and_rows_know_no_strategy_that_is_not_there() -> None:
    """A name that nobody answers to would pass unseen."""
    known = {*discovered(), "auto"}
    assert not {name for figure in figures().values() for name in figure.strategies} - known
    assert every_strategy() and not set(every_strategy()) - known


def test_the_audit_can_fail() -> None:
    """Of a strategy that has nothing, everything is missed."""

    class Teleport:
        """Be there at once."""

    assert papers(Teleport()) == drawn("teleport") == rows("teleport", every_strategy()) == []
    with pytest.raises(KeyError):
        carries("teleport")
