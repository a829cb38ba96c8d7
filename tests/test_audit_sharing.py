"""The audit of sharing: every scheme that is discovered has its papers, its conformance cases, its figure, its rows.

A new scheme is found without being listed anywhere, and fails here until it has all four. `auto` only chooses among the
others; it is judged and measured like them, and has no figure of its own.
"""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks.sharing.pace import MODES as RACED
from midstream.lab.figure import figures
from midstream.sharing.schemes.scheme_contract import schemes
from tests.sharing.draw import MODES as DRAWN

SECTION_C = {"off", "pull_up", "push_down", "mem_opt", "cpu_opt"}
"""What the dissertation has: the systems page's section C."""

PAPER = re.compile(r"Wang §\d")

audited = pytest.mark.parametrize("name", schemes())


def papers(kind: object) -> list[str]:
    """The sections that a scheme names: its class, or its file."""
    told = f"{sys.modules[type(kind).__module__].__doc__} {type(kind).__doc__}"
    return PAPER.findall(told)


def drawn(name: str) -> list[str]:
    """The figures of a scheme."""
    return [figure.name for figure in figures().values() if name in figure.schemes]


def test_the_dissertation_s_ways_are_all_there() -> None:
    assert schemes().keys() >= SECTION_C


@audited
def test_it_names_its_paper_sections(name: str) -> None:
    assert papers(schemes()[name])


@audited
def test_it_has_conformance_cases(name: str) -> None:
    assert name in DRAWN


@audited
def test_it_has_a_figure(name: str) -> None:
    assert name == "auto" or drawn(name)


@audited
def test_it_is_raced(name: str) -> None:
    assert name in RACED


def test_figures_know_no_scheme_that_is_not_there() -> None:
    assert not {name for figure in figures().values() for name in figure.schemes} - schemes().keys()


def test_the_audit_can_fail() -> None:
    class Telepathy:
        """They just know."""

    assert papers(Telepathy()) == drawn("telepathy") == []
