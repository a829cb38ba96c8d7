"""The spreadings in the sets of a step give the join, and the claims of Figs. 11.3 and 15.1 can go either way."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

from midstream.lab.drawing import PANEL
from midstream.lab.figures import wang_11_03 as by_keys
from midstream.lab.figures import wang_15_01 as figure
from midstream.lab.ring_figures import CASE
from midstream.lab.ring_spread import SpreadStreams, spread
from midstream.lab.tidy import table
from midstream.ring.columns import StreamRows
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings

W, STEPS = 100, 20
STREAMS = SpreadStreams.drawn("ABC", 15, 0.3, W, STEPS, seed=2)
DEPLOYMENT = Deployment(dict.fromkeys("ABC", W), nodes=3, master="A", segment=W)
CARRIED = sorted(set(spreadings()) - {"lanes"})
"""The streams have no key."""


def results(begin: int, streams: SpreadStreams = STREAMS) -> int:
    """The join by definition: the newest row comes from this time on, and none is older than a window then."""
    _, second, third = streams.times
    times = list(streams.times.values())
    found = 0
    for a, b, c in product(*(range(len(ts)) for ts in times)):
        ts = [int(times[0][a]), int(times[1][b]), int(times[2][c])]
        if max(ts) >= begin and max(ts) - min(ts) <= W:
            found += bool(streams.matches[second][a, b] and streams.matches[third][a, c])
    return found


@pytest.mark.parametrize("name", CARRIED)
def test_every_spreading_gives_the_join(name: str) -> None:
    assert spread(spreadings()[name], STREAMS, DEPLOYMENT, STEPS).results == results(W) > 100


@pytest.mark.parametrize("panel", by_keys.QUERIES)
def test_joins_by_keys_are_spread_by_hash(panel: str) -> None:
    classes, names = by_keys.QUERIES[panel]
    streams = SpreadStreams.keyed(classes, 15, 4, W, STEPS, seed=3)
    deployment = Deployment(dict.fromkeys(classes, W), 3, placed_by={label: keys[0] for label, keys in classes.items()})
    expected = results(W, streams)
    for name in names:
        assert spread(spreadings()[name], streams, deployment, STEPS).results == expected > 100


def test_without_copies_as_many_pairs_are_compared_as_at_one_node() -> None:
    found = {name: spread(spreadings()[name], STREAMS, DEPLOYMENT, STEPS) for name in CARRIED}
    alone = found["one_lane"]
    for name in ("hash_hops", "psp", "psp_d"):
        assert found[name].copies == 1 and found[name].twice == 0
        assert found[name].compared <= alone.compared
    assert alone.busiest == DEPLOYMENT.nodes
    assert found["ctr"].copies == 2 and 1 < found["atr"].copies < 3


def test_a_row_is_sent_to_its_homes_and_a_partial_result_to_where_it_is_not_yet() -> None:
    """With one node and with ATR no partial result travels: rows are sent, to every node that keeps them."""
    for name in ("one_lane", "atr"):
        homes = 0
        for label, ts in STREAMS.times.items():
            homes += len(spreadings()[name].home(DEPLOYMENT, label, StreamRows(ts[ts >= W], {})))
        assert spread(spreadings()[name], STREAMS, DEPLOYMENT, STEPS).sent == homes
    hops = spread(spreadings()["hash_hops"], STREAMS, DEPLOYMENT, STEPS)
    assert hops.sent > sum(int((ts >= W).sum()) for ts in STREAMS.times.values())


GOOD = {"one_lane": (1.0, 9, 0, 4.0, 1), "atr": (1.67, 9, 0, 3.5, 2), "ctr": (2.0, 9, 0, 2.6, 3),
        "psp": (1.0, 9, 0, 1.2, 5), "psp_d": (1.0, 9, 0, 1.2, 4), figure.SHORT: (2.0, 12, 3, 1.4, 9)}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "row", "slaves", "expected"),
    [
        ("atr", GOOD["atr"], 1.7, (True, True, True, True, True)),
        ("atr", (2.0, 9, 1, 1.9, 3), 1.0, (False, False, False, False, False)),
        ("psp_d", (1.1, 9, 1, 2.1, 3), 1.7, (False, True, False, False, False)),
        ("ctr", (1.9, 9, 0, 3.9, 6), 1.7, (False, True, True, True, False)),
        (figure.SHORT, (2.0, 12, 0, 2.1, 9), 1.7, (True, True, False, False, True)),
    ],
)
def test_the_claims_of_the_table(
    name: str, row: tuple[float, int, int, float, int], slaves: float, expected: tuple[bool, ...]
) -> None:
    """Memory, extra CPU, duplicates, balance and network."""
    names = (figure.KEPT, figure.PAIRS, figure.TWICE, figure.BUSIEST, figure.SENT)
    data = table(
        {CASE: case, **dict(zip(names, found, strict=True)), figure.SLAVES: slaves}
        for case, found in {**GOOD, name: row}.items()
    )
    assert tuple(verdict.holds for verdict in figure.Wang1501().judge(data)) == expected


def test_nodes_of_a_pair_of_slaves() -> None:
    """One lane holds every pair once; ATR's nodes hold fewer pairs more than once the longer segments are."""
    lane, atr = (spreadings()[name] for name in ("one_lane", "atr"))
    longer = [replace(DEPLOYMENT, segment=times * W) for times in (1, 2, 20)]
    found = [figure.nodes_of_a_pair(atr, STREAMS, deployment, W) for deployment in longer]
    assert figure.nodes_of_a_pair(lane, STREAMS, DEPLOYMENT, W) == 1 <= found[2] < found[1] < found[0] <= 3


def keyed(lanes: tuple[int, int, int, int], hops: tuple[int, int, int, int]) -> pa.Table:
    """Pairs, those at the busiest node, tuples sent and results, beside one lane's 100, 100, 50 and 9."""
    found = {
        (by_keys.ONE_KEY, "one_lane"): (100, 100, 50, 9),
        (by_keys.ONE_KEY, "lanes"): lanes,
        (by_keys.TWO_KEYS, "one_lane"): (100, 100, 50, 9),
        (by_keys.TWO_KEYS, "hash_hops"): hops,
    }
    names = (by_keys.PAIRS, by_keys.BUSIEST, by_keys.SENT, by_keys.RESULTS)
    return table(
        {PANEL: panel, CASE: case, **dict(zip(names, row, strict=True))} for (panel, case), row in found.items()
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (keyed((25, 10, 50, 9), (30, 20, 70, 9)), (True, True, True)),
        (keyed((25, 10, 51, 9), (30, 20, 70, 8)), (False, False, True)),
        (keyed((100, 10, 50, 9), (30, 50, 50, 9)), (False, False, False)),
    ],
)
def test_the_claims_on_joins_by_keys(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Subsets, in series, CPU adds up."""
    assert tuple(verdict.holds for verdict in by_keys.Wang1103().judge(data)) == expected
