"""Every spreading that is discovered is exact: what belongs together meets at one of the nodes visited, and once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.ring.deployment import Deployment
from midstream.ring.relocate import relocated, ring_of
from midstream.ring.spreading import Passive, Spreading, spreadings
from tests.unit.ring.cases import SPAN, Case, draw, meetings

MOST = 6
"""A ring is cut anew for so many nodes at most."""

CASES = 1000
"""How many each spreading has."""

CHANGES = CASES // len(spreadings())
NO_COPIES = ("hash_hops", "lanes", "one_lane", "psp", "psp_d")


def drawn(name: str, seed: int) -> Case:
    """A case that the spreading carries."""
    case = draw(seed, one_key=name == "lanes", master_first=name == "atr")
    if name == "ctr" and seed % 2:  # Its segments may be shorter than the windows.
        segment = 1 + max(case.deployment.windows.values()) // (1 + seed % 9)
        case = replace(case, deployment=replace(case.deployment, segment=segment))
    spreadings()[name].check(case.deployment, case.orders)
    return case


@pytest.mark.parametrize("name", spreadings())
@settings(max_examples=CASES, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_exactly_one_meeting(name: str, seed: int) -> None:
    case = drawn(name, seed)
    check_meetings(case, spreadings()[name], case.deployment, np.random.default_rng(seed), case.deployment.nodes)


def check_meetings(
    case: Case, spreading: Spreading, deployment: Deployment, rng: np.random.Generator, nodes: int
) -> None:
    """Fail unless all that belongs together meets once, at one of so many nodes."""
    for order in case.orders:
        for partials, label in case.partials(order, rng):
            copies = spreading.home(deployment, label, case.rows[label])
            visits = spreading.visit(deployment, partials, label)
            assert set(copies.node) | set(visits.node) <= set(range(nodes))
            met = meetings(visits, copies, case.rows[label], len(partials))
            assert (met[case.joins(partials, label)] == 1).all()
            assert (met <= 1).all()
            assert (visits.low <= visits.high).all()


@pytest.mark.parametrize("name", spreadings())
@settings(max_examples=CHANGES // 2, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_exactly_one_meeting_where_nodes_come_and_go_passively(name: str, seed: int) -> None:
    """Two changes one after the other, from any spreading to any: what was before runs out meanwhile."""
    rng = np.random.default_rng(seed)
    keyed, cuts = bool(rng.random() < 0.5), sorted(map(int, rng.integers(-5, SPAN, 2)))
    names = [str(rng.choice([one for one in spreadings() if keyed or one != "lanes"])) for _ in cuts]
    case = draw(seed, one_key=keyed or name == "lanes", master_first=True)
    others = [draw(seed + at, one_key=True, master_first=True).deployment for at in (1, 2)]
    spreading, deployment = spreadings()[name], case.deployment
    for begins, then, other in zip(cuts, names, others, strict=True):
        spreading = Passive(spreadings()[then], begins, spreading, deployment)
        same = {what: getattr(case.deployment, what) for what in SAME}
        own = {what: on_labels(case, other, what) for what in ("rings", "tables", "ages")}
        deployment = replace(other, **same, **own)
    check_meetings(case, spreading, deployment, rng, max(one.nodes for one in (case.deployment, *others)))


SAME = ("windows", "moments", "placed_by", "master", "segment")
"""What a join has in common, however it is deployed; segments must be as long as its windows."""


def on_labels(case: Case, other: Deployment, what: str) -> dict[str, Any]:
    """What another deployment has of each stream of the case; it may have fewer streams."""
    known = getattr(other, what)
    chosen = {label: known[label] for label in case.rows if label in known}
    return {label: other.tables["A"] for label in case.rows} | chosen if what == "tables" else chosen


@settings(max_examples=CHANGES, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_exactly_one_meeting_where_a_ring_is_cut_anew(seed: int) -> None:
    """Rows stay where they came (PSP-D) or move with their age (PSP), at other nodes than before from now on."""
    case, rng = drawn("psp", seed), np.random.default_rng(seed)
    before, nodes = case.deployment, int(rng.integers(1, MOST + 1))
    members = {
        label: rng.permutation(nodes)[: rng.integers(1, nodes + 1)].tolist() if rng.random() < 0.5 else range(nodes)
        for label in before.windows
    }
    cut = {
        label: relocated(table, ring := before.ring(label).tolist(), members[label],
                         max(1, before.windows[label] // len(ring)))
        for label, table in before.tables.items()
    }  # fmt: skip
    moved = replace(before, nodes=nodes, ages={}, rings={}, tables={label: table for label, (table, _) in cut.items()})
    moved = replace(moved, rings={label: ring for label, (_, ring) in cut.items()})
    check_meetings(case, spreadings()["psp_d"], moved, rng, nodes)
    rings = {label: ring_of(before.ring(label).tolist(), members[label]) for label in before.windows}
    check_meetings(case, spreadings()["psp_i"], replace(moved, rings=rings), rng, nodes)


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
