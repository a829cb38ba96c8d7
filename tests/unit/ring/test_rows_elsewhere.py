"""Where rows of some times lie elsewhere, no spreading looks for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from midstream.ring.columns import Partials
from midstream.ring.deployment import Deployment
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import spreadings

W = 100
NODES = 4
BARE = Deployment(
    {"A": W, "B": W}, NODES, moments=(1_000,), tables={"B": SliceTable((0, 925, 950, 975), (3, 2, 1, 0))},
    master="B", segment=W, copies=2,
)  # fmt: skip
PROBES = Partials({"A": np.array([1_000, 900, 800])}, {}, np.array([1_000] * 3))
"""They may join rows of B from 900 to 1,100, from 800 to 1,000, and from 700 to 900."""


@pytest.mark.parametrize("name", spreadings())
@pytest.mark.parametrize("edge", [{"since": 5_000}, {"until": -5_000}])
def test_where_all_rows_lie_elsewhere_nobody_looks(edge: dict[str, int], name: str) -> None:
    assert not len(spreadings()[name].visit(replace(BARE, **edge), PROBES, "B").not_in_vain())


@pytest.mark.parametrize("name", spreadings())
def test_what_lies_elsewhere_is_not_looked_for(name: str) -> None:
    since = 950
    newer = replace(BARE, since=since)
    found = spreadings()[name].visit(newer, PROBES, "B").not_in_vain()
    assert set(found.partial.tolist()) == {0, 1} and found.low.min() == since
    older = spreadings()[name].visit(replace(BARE, until=since - 1), PROBES, "B").not_in_vain()
    assert set(older.partial.tolist()) == {0, 1, 2} and older.high.max() == since - 1
    both = spreadings()[name].visit(BARE, PROBES, "B")
    met = [int((one.high - one.low + 1).sum()) for one in (found, older, both)]
    assert met[0] + met[1] == met[2]
