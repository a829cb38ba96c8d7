"""What each spreading promises beside exactness: copies by its formula, the slices it visits, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.model.errors import PlanError
from midstream.ring.columns import Partials, StreamRows, Words
from midstream.ring.deployment import MOST_NODES, Deployment
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import spreadings

W = 100
THREE = Deployment({"A": W, "B": W, "C": W}, nodes=4, moments=(1000,), master="A", segment=4 * W)
ORDERS = (("A", "B", "C"), ("B", "A", "C"), ("C", "A", "B"))


def rows(*ts: int) -> StreamRows:
    return StreamRows(np.array(ts, np.int64), {})


def probe(ts: int, moment: int) -> Partials:
    return Partials({"A": np.array([ts])}, {}, np.array([moment]))


def copies(name: str, deployment: Deployment, label: str, found: StreamRows) -> float:
    """How often a row is kept on average."""
    return len(spreadings()[name].home(deployment, label, found)) / len(found)


@pytest.mark.parametrize("segment", [W, 2 * W, 10 * W])
def test_atr_keeps_1_plus_2_w_by_t_times_m_minus_1_by_m_copies(segment: int) -> None:
    deployment = replace(THREE, segment=segment, nodes=16)
    every = rows(*range(20 * segment))
    measured = np.mean([copies("atr", deployment, label, every) for label in "ABC"])
    assert measured == pytest.approx(1 + 2 * (W / segment) * 2 / 3, rel=0.01)
    assert copies("atr", deployment, "A", every) == 1


def test_atr_never_keeps_a_row_twice_at_a_node() -> None:
    assert copies("atr", replace(THREE, nodes=1, segment=W), "B", rows(*range(1000))) == 1


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_ctr_keeps_l_copies(kept: int) -> None:
    assert copies("ctr", replace(THREE, copies=kept), "B", rows(*range(5000))) == kept


def test_ctr_visits_as_few_nodes_as_hold_what_it_needs() -> None:
    """Where every node keeps everything, one is enough, though what may join lies in three segments."""
    deployment = replace(THREE, segment=W, copies=4)
    visits = spreadings()["ctr"].visit(deployment, probe(250, 1000), "B")
    assert (visits.low.tolist(), visits.high.tolist()) == ([150, 200, 300], [199, 299, 350])
    assert len(set(visits.node)) == 1


@pytest.mark.parametrize(("segment", "least", "most"), [(W, 3.5, 4.5), (W // 10, 1.0, 1.4)])
def test_ctr_with_short_segments_shares_the_probes_of_a_moment(segment: int, least: float, most: float) -> None:
    """One node for each segment: with segments as long as a window two or three of eight nodes have all the work."""
    deployment = replace(THREE, segment=segment, nodes=8, copies=2)
    work = np.zeros(8)
    for ts in range(10 * W, 10 * W + W // 2, 5):
        visits = spreadings()["ctr"].visit(deployment, probe(ts, ts), "B")
        assert (visits.high - visits.low + 1).sum() == 2 * W + 1
        work += np.bincount(visits.node, visits.high - visits.low + 1, minlength=8)
    assert least <= work.max() / work.mean() <= most
    assert bool(work.min() > 0) is (segment < W)


def test_ctr_finds_the_same_cover_wherever_it_is_asked() -> None:
    """A probe by itself and one among many go the same way: what weighs a node is known to every node."""
    deployment = replace(THREE, segment=W // 7, nodes=8, copies=3)
    every = np.arange(900, 1100, 9)
    many = spreadings()["ctr"].visit(deployment, replace(probe(0, 0), ts={"A": every}, moment=every), "B")
    for at, ts in enumerate(every.tolist()):
        alone = spreadings()["ctr"].visit(deployment, probe(ts, ts), "B")
        assert alone.node.tolist() == many.node[many.partial == at].tolist()


def test_psp_i_keeps_what_has_moved_on_for_the_probe_that_still_looks_for_it() -> None:
    deployment = replace(THREE, moments=(1000, 1010))
    home = spreadings()["psp_i"].home(deployment, "B", rows(980, 970))
    assert sorted(zip(home.row.tolist(), home.node.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize(("moment", "first"), [(1000, (976, 1100)), (1010, (986, 1100))])
def test_psp_i_looks_between_the_marks_of_its_own_moment(moment: int, first: tuple[int, int]) -> None:
    visits = spreadings()["psp_i"].visit(replace(THREE, moments=(1000, 1010)), probe(1000, moment), "B")
    assert visits.node.tolist() == [0, 1, 2, 3]
    assert (visits.low[0], visits.high[0]) == first


def test_psp_visits_only_slices_that_its_windows_meet() -> None:
    """A row that comes 60 late looks among rows aged up to 160, and the tail has them; or among those aged 50 to 80."""
    assert spreadings()["psp"].visit(THREE, probe(940, 1000), "B").node.tolist() == [0, 1, 2, 3]
    narrow = replace(THREE, windows={"A": 10, "B": 20, "C": W}, ages={"B": (25, 50, 75)})
    assert spreadings()["psp"].visit(narrow, probe(940, 1000), "B").node.tolist() == [2, 3]


def test_psp_d_visits_a_node_once_for_all_its_slices_that_may_have_partners() -> None:
    """Slices of 10 over nodes 0, 1 and 2 in turns; a row of 990 may meet rows from 890 to 1090."""
    table = SliceTable(tuple(range(860, 1000, 10)), tuple(number % 3 for number in range(14)))
    found = spreadings()["psp_d"].visit(replace(THREE, nodes=3, tables={"B": table}), probe(990, 1000), "B")
    assert found.node.tolist() == [0, 1, 2]
    # From the first slice of the node that may have some to the end of its last one, the head being open.
    assert list(zip(found.low.tolist(), found.high.tolist(), strict=True)) == [(890, 989), (900, 1090), (910, 979)]
    late = spreadings()["psp_d"].visit(replace(THREE, nodes=3, tables={"B": table}), probe(765, 1000), "B")
    assert late.node.tolist() == [0] and (late.low.tolist(), late.high.tolist()) == ([665], [865])


def test_hash_hops_visit_one_node_where_the_key_is_known_and_all_where_it_is_not() -> None:
    deployment = replace(THREE, placed_by={"B": "k", "C": "g"})
    known = replace(probe(1, 1), keys={"k": np.array([7])})
    assert len(spreadings()["hash_hops"].visit(deployment, known, "B")) == 1
    assert len(spreadings()["hash_hops"].visit(deployment, known, "C")) == 4


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("atr", {"master": "Z"}, "no source 'Z'.*use one of: A, B, C"),
        ("atr", {"segment": W - 1}, "shorter than the widest window"),
        ("ctr", {"segment": 1}, "into more than 64.*use at least"),
        ("ctr", {"segment": 0}, "into more than 64"),
        ("ctr", {"copies": 5}, "4 nodes cannot have 5 copies.*use 1 to 4"),
        ("psp_d", {}, "no state slice table"),
        ("psp_d", {"tables": {label: SliceTable((0,), (4,)) for label in "ABC"}}, "slices at nodes beyond 3"),
        ("lanes", {"placed_by": {"A": "k", "B": "k"}}, "no single key joins all sources"),
        ("lanes", {"placed_by": {"A": "k", "B": "k", "C": "g"}}, "no single key joins all sources"),
    ],
)
def test_what_a_spreading_cannot_carry_is_refused(name: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        spreadings()[name].check(replace(THREE, **change), ORDERS)


def test_atr_refuses_orders_that_put_the_master_last() -> None:
    with pytest.raises(PlanError, match=r"rows of B must visit the master first.*B C A"):
        spreadings()["atr"].check(THREE, (("A", "B", "C"), ("B", "C", "A")))


@pytest.mark.parametrize("nodes", [0, MOST_NODES + 1])
def test_no_nodes_and_more_than_sense_are_refused(nodes: int) -> None:
    with pytest.raises(PlanError, match=f"cannot be {nodes} .*1 to {MOST_NODES}"):
        Deployment({"A": 1}, nodes)


def test_slices_must_be_as_many_as_nodes_and_ascend() -> None:
    for ends in ((1, 2), (3, 2, 1)):
        with pytest.raises(PlanError, match="3 ages in ascending order"):
            Deployment({"A": 9}, 4, ages={"A": ends})


Batches = st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(batches=Batches, most=st.one_of(st.none(), st.integers(1, 4)), length=st.integers(1, 20))
@example(batches=[[0, 18], [], [12]], most=None, length=20)
def test_no_row_ever_changes_its_slice(batches: list[list[int]], most: int | None, length: int) -> None:
    """Late rows and ties among them, and slices that become shorter, as where they are cut by load."""
    table, came, slices = SliceTable((0,), (0,)), np.array([], np.int64), np.array([], np.int64)
    for number, batch in enumerate(batches):
        table = table.grown(batch, max(length >> number // 2, 1), 3, most)
        assert table.place(came).tolist() == slices.tolist()
        came = np.append(came, np.array(batch, np.int64))
        slices = table.place(came)
        assert table.nodes == tuple(-i % 3 for i in range(len(table.starts)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ts=st.lists(st.integers(0, 60), max_size=20, unique=True).map(sorted), most=st.integers(1, 4))
def test_a_slice_is_full_at_its_length_or_its_bound(ts: list[int], most: int) -> None:
    table = SliceTable((0,), (0,)).grown(ts, 10, 4, most)
    slices = table.place(np.array(ts, np.int64))
    in_each: list[Words] = [np.array(ts)[slices == i] for i in range(len(table.starts))]
    assert all(len(found) <= most for found in in_each)
    assert all(found.max() - start < 10 for found, start in zip(in_each, table.starts, strict=True) if len(found))
    for found, start, after in zip(in_each, table.starts, table.starts[1:], strict=False):
        assert len(found) == most or after >= start + 10
    assert table.rows == len(in_each[-1])
