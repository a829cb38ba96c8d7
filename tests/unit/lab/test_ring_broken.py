"""The checks of chapter 12 see a protocol that is broken: each rule taken away shows in one of them."""

from __future__ import annotations

import pytest

from midstream.lab.ring_cluster import Message, RingArrivals, RingCluster
from midstream.ring.cost import RingCosts
from tests.unit.lab.ring_join import WINDOW, expected

COSTS = RingCosts(join=1e-3, insert=1e-4, purge=1e-4, send=1e-4, hop=5e-3)


class NoBuildTuples(RingCluster):
    """Outgrown rows leave the ring instead of going to the next node."""

    def _send(self, node: int, message: Message) -> None:
        if message.kind != "row":
            super()._send(node, message)


class NothingPurged(RingCluster):
    """Rows stay at the head."""

    def _purge(self, node: int, cycle: int) -> None:
        return


class ShortLives(RingCluster):
    """A partial result ends its life a node too early."""

    def _probe(self, node: int, message: Message) -> None:
        if message.kind != "partial" or (message.origin - 1) % self.nodes != node:
            super()._probe(node, message)


class SecondRound(RingCluster):
    """A partial result goes round twice."""

    def _send(self, node: int, message: Message) -> None:
        super()._send(node, message)
        if message.kind == "partial" and message.origin == node:
            super()._send(node, message)


class EndOvertakes(RingCluster):
    """An END tuple travels faster than what it closes: the network is not a queue."""

    def _schedule(self, time: float, node: int, message: Message) -> None:
        super()._schedule(time - 0.9 * self.costs.hop if message.kind == "END" else time, node, message)


class NoEnd(RingCluster):
    """The head reads the next row as soon as it has probed with the last."""

    def _next_round(self, cycle: int, round_: int) -> None:
        super()._next_round(cycle, round_)
        if round_ == 1:
            self._admit(self._at[0].free)


class NoMarks(RingCluster):
    """Of rows processed at the same time none delays a purge."""

    def _purge(self, node: int, cycle: int) -> None:
        super()._purge(node, cycle)
        self._at[node].low[:] = self._at[node].moved


BROKEN = [
    (NoBuildTuples, 0, "Lemma 7"),
    (NothingPurged, 0, "Lemma 7"),
    (ShortLives, 0, "missing"),
    (SecondRound, 0, "twice"),
    (EndOvertakes, 0, "Lemma 8"),
    (EndOvertakes, 0, "Theorem 7"),
    (NoEnd, 0, "Lemma 7"),
    (NoMarks, 4, "Lemma 7"),
]


def faults(ring: type[RingCluster], concurrent: int) -> set[str]:
    """What the checks find: the lemmas and theorems violated, results that are missing or come twice (Theorem 8)."""
    arrivals = RingArrivals.drawn(3, 2.0, 0.4, 12.0, seed=1)
    counts = ring(arrivals, WINDOW, 4, COSTS, concurrent=concurrent, queued=True).run()
    found, due = list(map(frozenset, counts.results)), expected(arrivals)
    seen = set(counts.violations)
    if due - set(found):
        seen.add("missing")
    if len(found) != len(set(found)):
        seen.add("twice")
    return seen


@pytest.mark.parametrize(("ring", "concurrent", "fault"), BROKEN)
def test_what_is_broken_is_seen(ring: type[RingCluster], concurrent: int, fault: str) -> None:
    assert fault in faults(ring, concurrent)


@pytest.mark.parametrize("concurrent", [0, 4])
def test_what_is_whole_shows_nothing(concurrent: int) -> None:
    assert faults(RingCluster, concurrent) == set()
