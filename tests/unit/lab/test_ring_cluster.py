"""The ring tuple at a time: exact, and by the lemmas and theorems of chapter 12."""

from __future__ import annotations

import numpy as np
import pytest
from typing_extensions import override

from midstream.lab.ring_cluster import DynamicRing, RingArrivals, RingCluster, RingCounts
from midstream.lab.ring_settings import WINDOW as RING_WINDOW
from midstream.lab.ring_settings import costs
from midstream.lab.ring_settings import run as run_of_16
from midstream.ring.cost import RingCosts, RingLoad, length
from tests.unit.lab.ring_join import WINDOW, as_sets, expected

COSTS = RingCosts(join=1e-3, insert=1e-4, purge=1e-4, send=1e-4, hop=5e-3)


RINGS = (RingCluster, DynamicRing)


def run(
    ways: int, nodes: int, concurrent: int = 0, seed: int = 1, begin: float = 0.0, ring: type[RingCluster] = RingCluster
) -> tuple[RingArrivals, RingCounts]:
    selectivity = 0.4 if ways < 5 else 0.3
    arrivals = RingArrivals.drawn(ways, 2.0 if ways < 4 else 1.0, selectivity, seconds=12.0, seed=seed)
    return arrivals, ring(arrivals, WINDOW, nodes, COSTS, begin=begin, concurrent=concurrent).run()


@pytest.mark.parametrize("ring", RINGS)
@pytest.mark.parametrize("concurrent", [0, 1, 2, 5])
@pytest.mark.parametrize(("ways", "nodes"), [(2, 3), (3, 1), (3, 2), (3, 5), (4, 3), (7, 4), (9, 4)])
def test_the_ring_is_exact_and_its_lemmas_hold(ways: int, nodes: int, concurrent: int, ring: type[RingCluster]) -> None:
    """Theorem 8: neither more nor less than the join, nothing twice; Lemmas 7 and 8, Theorem 7 at every moment."""
    for seed in (1, 2):
        arrivals, counts = run(ways, nodes, concurrent, seed, ring=ring)
        assert counts.violations == []
        assert as_sets(counts.results) == expected(arrivals)
        assert set(counts.ends.values()) == {ways - 1}
        assert len(counts.results) > 20


@pytest.mark.parametrize("ring", RINGS)
def test_a_ring_that_begins_full_goes_on_as_one_that_has_filled(ring: type[RingCluster]) -> None:
    arrivals, counts = run(3, 4, begin=8.0, ring=ring)
    assert counts.violations == []
    assert as_sets(counts.results) == expected(arrivals, begin=8.0)


def test_no_row_is_kept_twice_but_where_several_are_processed_at_once() -> None:
    """PSP's slices are disjoint; what PSP-I has moved on stays until no probe under way looks for it."""
    one, alone, many = (run(3, 5, concurrent)[1] for concurrent in (0, 1, 5))
    assert alone.state_rows == one.state_rows
    assert np.mean(many.state_rows) > np.mean(one.state_rows)


@pytest.mark.parametrize("ring", RINGS)
def test_pairs_compared_are_those_of_one_node(ring: type[RingCluster]) -> None:
    for nodes in (2, 5):
        assert run(3, nodes, ring=ring)[1].compared == run(3, 1)[1].compared


@pytest.mark.parametrize("concurrent", [0, 5])
def test_with_a_dynamic_head_a_row_is_inserted_and_purged_once(concurrent: int) -> None:
    """§12.5: in PSP once for each slice. With rows at once there are several heads and tails (Fig. 12.7)."""
    (_, moved), (arrivals, stayed) = (run(3, 5, concurrent, ring=ring) for ring in RINGS)
    rows = sum(len(times) for times in arrivals.times)
    assert stayed.inserted == rows >= stayed.purged > rows / 2
    assert moved.inserted > 2 * rows and moved.purged > 2 * rows
    assert sum(stayed.sent.values()) < sum(moved.sent.values())
    assert (max(stayed.heads) > 1) == (concurrent > 0)
    assert set(moved.heads) == {1}


class Hasty(DynamicRing):
    """Purges by the time of the row that passes, whatever others are under way."""

    @override
    def _purge(self, node: int, cycle: int) -> None:
        self._oldest[cycle] = self._time(self._read[cycle][0])
        super()._purge(node, cycle)


def test_with_several_tails_a_row_is_purged_too_early_if_the_oldest_probe_is_not_asked() -> None:
    """§12.6: purging is postponed until no row under way can need the purged one."""
    arrivals, slow = RingArrivals.drawn(3, 6.0, 0.2, 12.0, seed=1), RingCosts(join=1e-3, hop=5e-2)
    found = [ring(arrivals, WINDOW, 5, slow, concurrent=12, queued=True).run() for ring in (DynamicRing, Hasty)]
    assert not found[0].violations and max(found[0].heads) > 2
    assert "Lemma 7" in found[1].violations


@pytest.mark.parametrize(
    ("ring", "waiting"), [(RingCluster, (0.52, 0.26, 0.15, 0.10)), (DynamicRing, (0.53, 0.25, 0.16, 0.13))]
)
def test_interleaving_puts_idle_nodes_to_use(ring: type[RingCluster], waiting: tuple[float, ...]) -> None:
    """§12.4: with one row under way nodes wait for one another; the next row is there whenever the ring takes one."""
    rows = RingArrivals.drawn(3, 5.0, 0.1, 12.0, seed=16)
    priced, idle = RingCosts(join=5e-6, send=5e-6, hop=5e-5), list[float]()
    for at_once in (0, 2, 4, 8):
        counts = ring(rows, 10.0, 4, priced, begin=10.0, concurrent=at_once, queued=True).run()
        idle.append(counts.idle(priced, 4))
    assert idle == pytest.approx(waiting, abs=0.006)


def test_interleaving_takes_less_time() -> None:
    """Latencies grow, for rows share the nodes, but the last result comes sooner."""
    busy = RingCosts(join=5e-2, hop=5e-2)
    arrivals = RingArrivals.drawn(3, 2.0, 0.4, 12.0, seed=1)
    alone, many = (RingCluster(arrivals, WINDOW, 4, busy, concurrent=c).run() for c in (0, 4))
    assert many.finished < alone.finished


@pytest.mark.parametrize("ways", [5, 7])
def test_the_best_length_of_more_streams_is_the_model_s(ways: int) -> None:
    """§16.2 runs joins of 5, 7 and 9 streams too, and draws those of 3 alone (the lab's Fig. 16.2)."""
    latencies, state = dict[int, list[float]](), list[int]()
    for seed in range(3):
        rows = RingArrivals.drawn(ways, 1.0, 0.2, RING_WINDOW + 6, seed=seed)
        for nodes in range(1, 11):
            counts = run_of_16(rows, "large join", nodes)
            latencies.setdefault(nodes, []).extend(counts.latencies)
            state += counts.state_rows
    load = RingLoad.alike(ways, float(np.mean(state)) / ways, 0.2)
    means = {nodes: float(np.mean(found)) for nodes, found in latencies.items()}
    assert abs(length(load, costs("large join"), 10) - min(means, key=means.__getitem__)) <= 1
