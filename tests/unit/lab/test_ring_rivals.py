"""ATR and CTR tuple at a time, and rings that are adapted while they run, give the join; what they keep and compare.

And PSP and PSP-I of the ring's room say of every probe what the ring tuple at a time does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from midstream.lab.ring_cluster import Adaptation, AdaptiveRing, RingArrivals, RingCluster
from midstream.lab.ring_routed import LABELS, MICROSECONDS, RoutedCluster
from midstream.ring.columns import Partials, StreamRows
from midstream.ring.cost import RingCosts
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings
from tests.unit.lab.ring_join import WINDOW, as_sets, expected

COSTS = RingCosts(join=1e-3, send=1e-4, hop=5e-3)
ROUTED = [("one_lane", {}), ("atr", {"segment": 4.0}), ("atr", {"segment": 9.0}), ("ctr", {"segment": 4.0}),
          ("ctr", {"segment": 6.0, "copies": 1})]  # fmt: skip


def drawn(seed: int, rate: float = 2.0) -> RingArrivals:
    return RingArrivals.drawn(3, rate, 0.4, 16.0, seed)


def routed(name: str, options: dict[str, Any], seed: int, begin: float = 0.0, costs: RingCosts = COSTS) -> Any:
    deployed = {key: round(value * MICROSECONDS) if key == "segment" else value for key, value in options.items()}
    windows = dict.fromkeys(LABELS[:3], round(WINDOW * MICROSECONDS))
    deployment = Deployment(windows, 3, master="B", **deployed)
    return RoutedCluster(spreadings()[name], deployment, drawn(seed), costs, begin).run()


@pytest.mark.parametrize(("name", "options"), ROUTED)
@pytest.mark.parametrize("begin", [0.0, 8.0])
def test_rows_that_stay_where_they_are_sent_give_the_join(name: str, options: dict[str, Any], begin: float) -> None:
    for seed in (1, 2):
        results = routed(name, options, seed, begin).results
        assert as_sets(results) == expected(drawn(seed), begin)
        assert len(results) > 20


def test_copies_are_kept_where_the_spreading_says() -> None:
    kept = {str(case): float(np.mean(routed(*case, seed=1, begin=8.0).state_rows)) for case in ROUTED}
    alone, short, long, two, one = kept.values()
    assert one == alone and two == 2 * alone
    assert alone < long < short < 3 * alone


def test_what_is_at_the_node_need_not_be_sent() -> None:
    """One lane sends every row once, ATR as often as it is kept; neither sends a partial result."""
    alone, atr = (routed(*case, seed=1).sent for case in ROUTED[:2])
    assert set(alone.values()) == {1}
    assert set(atr.values()) <= {1, 2, 3} and sum(atr.values()) > len(atr)


def test_latency_is_sending_and_comparing() -> None:
    """One node, nothing else under way: the copy, the network, then every pair until the result."""
    found = routed("one_lane", {}, 1, costs=RingCosts(join=0.0, send=1e-4, hop=5e-3))
    assert set(np.round(found.latencies, 9)) == {0.0051}


class Recorded(RingCluster):
    """Writes down the slices that rows probe: the node, the stream, the row's time, and the numbers of the rows met."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.probes: list[tuple[int, int, float, tuple[int, int]]] = []

    def _slice(self, node: int, stream: int, time: float) -> tuple[int, int]:
        found = super()._slice(node, stream, time)
        self.probes.append((node, stream, time, found))
        return found


@pytest.mark.parametrize(("name", "concurrent"), [("psp", 0), ("psp_i", 4)])
def test_the_spreading_says_where_the_ring_s_probes_meet_rows(name: str, concurrent: int) -> None:
    """The home of what a probe meets, and the bounds of its visit, at the probe's own moment."""
    arrivals = drawn(1)
    ring = Recorded(arrivals, WINDOW, 4, COSTS, concurrent=concurrent, queued=True)
    ring.run()
    windows = dict.fromkeys(LABELS[:3], round(WINDOW * MICROSECONDS))
    for node, stream, time, (low, high) in ring.probes:
        moment = round(time * MICROSECONDS)
        deployment = Deployment(windows, 4, moments=(moment,))
        times = np.round(arrivals.times[stream] * MICROSECONDS).astype(np.int64)
        within = (times < moment) & (times > moment - windows["A"])
        homes = spreadings()[name].home(deployment, LABELS[stream], StreamRows(times, {}))
        here = within & np.isin(np.arange(len(times)), homes.row[homes.node == node])
        assert np.flatnonzero(here).tolist() == list(range(low, high))
        other = LABELS[(stream + 1) % 3]
        probe = Partials({other: np.array([moment])}, {}, np.array([moment]))
        visits = spreadings()[name].visit(deployment, probe, LABELS[stream])
        at = visits.node == node
        met = (times[:, None] >= visits.low[at]) & (times[:, None] <= visits.high[at])
        assert np.flatnonzero(within & met.any(axis=1)).tolist() == list(range(low, high))
    assert len({node for node, *_ in ring.probes}) == 4


@pytest.mark.parametrize("adaptation", [Adaptation(), Adaptation(1.0), Adaptation(0.5, most=7)])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_adapted_ring_is_exact(adaptation: Adaptation, seed: int) -> None:
    arrivals = RingArrivals.paced(3, [(2.0, 8.0), (5.0, 6.0)], 0.3, seed)
    ring = AdaptiveRing(arrivals, WINDOW, 3, COSTS, begin=5.0, selectivity=0.3, adaptation=adaptation)
    counts = ring.run()
    assert counts.violations == []
    assert as_sets(counts.results) == expected(arrivals, 5.0)
    lengths = {moment.nodes for moment in ring.course}
    assert (len(lengths) > 1) == bool(adaptation.most)
    assert any(moment.moved for moment in ring.course) == bool(adaptation.every)


def test_slices_by_count_even_out_a_burst() -> None:
    arrivals = RingArrivals.paced(3, [(4.0, 8.0), (16.0, 4.0)], 0.05, seed=3)
    worst = []
    for adaptation in (Adaptation(), Adaptation(0.5)):
        ring = AdaptiveRing(arrivals, WINDOW, 4, COSTS, begin=5.0, selectivity=0.05, adaptation=adaptation)
        ring.run()
        worst.append(max(moment.fullest for moment in ring.course if moment.time > 8.5))
    assert worst[1] < worst[0] - 0.2


def test_the_ring_waits_for_rows_that_move() -> None:
    """Every node, for the fullest sender and the longest way: a row that comes meanwhile waits at the head."""
    arrivals = RingArrivals.drawn(3, 5.0, 0.3, 9.0, 1)
    ring = AdaptiveRing(arrivals, WINDOW, 3, COSTS, begin=5.0, selectivity=0.3, adaptation=Adaptation(most=9))
    ring.run()
    moved, on = ring._relocate(9.0, now=100.0)
    assert ring.nodes > 3 and moved > 20
    assert on - 100.0 > 10 * COSTS.send + COSTS.hop
    assert {at.free for at in ring._at} == {on}
