"""Every spreading that is discovered is exact: what belongs together meets at one of the nodes visited, and once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.ring.discovery import spreadings
from tests.unit.ring.cases import Case, draw, meetings

CASES = 1000 // len(spreadings())
NO_COPIES = ("hash_hops", "lanes", "one_lane", "psp", "psp_d")


def drawn(name: str, seed: int) -> Case:
    """A case that the spreading carries."""
    case = draw(seed, one_key=name == "lanes", master_first=name == "atr")
    spreadings()[name].check(case.deployment, case.orders)
    return case


@pytest.mark.parametrize("name", spreadings())
@settings(max_examples=CASES, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_exactly_one_meeting(name: str, seed: int) -> None:
    case, spreading = drawn(name, seed), spreadings()[name]
    rng = np.random.default_rng(seed)
    for order in case.orders:
        for partials, label in case.partials(order, rng):
            copies = spreading.home(case.deployment, label, case.rows[label])
            visits = spreading.visit(case.deployment, partials, label)
            assert set(copies.node) | set(visits.node) <= set(range(case.deployment.nodes))
            met = meetings(visits, copies, case.rows[label], len(partials))
            assert (met[case.joins(partials, label)] == 1).all()
            assert (met <= 1).all()
            assert (visits.low <= visits.high).all()


@pytest.mark.parametrize("name", NO_COPIES)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_rows_are_kept_once(name: str, seed: int) -> None:
    case = drawn(name, seed)
    for label, rows in case.rows.items():
        assert spreadings()[name].home(case.deployment, label, rows).row.tolist() == list(range(len(rows)))


def test_the_cases_have_what_there_is_to_meet() -> None:
    """Were there no partial results, the property would hold of anything."""
    belonging = 0
    for seed in range(50):
        case, rng = drawn("psp", seed), np.random.default_rng(seed)
        for order in case.orders:
            belonging += sum(int(case.joins(partials, label).sum()) for partials, label in case.partials(order, rng))
    assert belonging > 1000
