"""The audit of the ring: every spreading discovered names its sections, and has conformance cases, a figure, and rows.

A new spreading is found without being listed anywhere, and fails here until it has all four.
"""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks.ring.contestants import on_embedded, on_spark
from benchmarks.ring.load import FULL
from benchmarks.ring.scenarios import SCENARIOS
from midstream.lab.figure import figures
from midstream.ring.spreading import spreadings
from tests.property.test_spreads import WAYS

PARTS_2_AND_3 = {"hash_hops", "psp", "psp_i", "psp_d", "atr", "ctr", "one_lane", "lanes"}
"""What the dissertation spreads a join by, and what it compares with: the ring page's table."""

PAPER = re.compile(r"Wang §\d")

NOT_SPREAD = {"one_lane"}
"""It is what the others are measured by, and no section's."""

audited = pytest.mark.parametrize("name", spreadings())


def papers(kind: object) -> list[str]:
    """The sections that a spreading names: its class, or its file."""
    found = f"{sys.modules[type(kind).__module__].__doc__} {type(kind).__doc__}"
    return PAPER.findall(found)


def drawn(name: str) -> list[str]:
    """The figures of a spreading."""
    return [figure.name for figure in figures().values() if name in figure.spreadings]


def rows(name: str, host: str) -> list[str]:
    """The scenarios in which a spread is measured on a host."""
    taking_part = on_embedded if host == "embedded" else on_spark
    return [asked.name for asked in SCENARIOS.values() if name in {one.name for one in taking_part(asked, FULL)}]


def test_the_dissertation_s_spreadings_are_all_there() -> None:
    assert spreadings().keys() >= PARTS_2_AND_3


@audited
def test_it_names_its_paper_sections(name: str) -> None:
    assert name in NOT_SPREAD or papers(spreadings()[name])


@audited
def test_it_has_conformance_cases(name: str) -> None:
    """The suite draws joins that it carries, and counts how many they were."""
    assert name in WAYS


@audited
def test_it_has_a_figure(name: str) -> None:
    assert drawn(name), "no figure of the lab has it among its spreadings"


@audited
def test_it_has_rows_in_the_benchmark(name: str) -> None:
    assert rows(name, "embedded") and rows(name, "spark")


def test_figures_know_no_spreading_that_is_not_there() -> None:
    """A name that nobody answers to would pass unseen."""
    assert not {name for figure in figures().values() for name in figure.spreadings} - spreadings().keys()


def test_the_audit_can_fail() -> None:
    """Of a spreading that has nothing, everything is missed."""

    class Scatter:
        """Anywhere."""

    assert papers(Scatter()) == drawn("scatter") == rows("scatter", "embedded") == []
