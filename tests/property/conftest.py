"""What several suites of random cases need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from midstream.ring import lengthening
from midstream.ring.cost import RingCosts
from midstream.step.spreading import node_orders


@pytest.fixture(scope="module")
def lengths_change_often() -> Iterator[None]:
    """Look at lengths and orders after every step, with costs by which few pairs are worth a node."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lengthening, "STEPS_BETWEEN", 1)
        patched.setattr(node_orders, "LEAST_COUNTED", 1)
        patched.setattr(node_orders, "SAVED", 0)
        patched.setattr(node_orders, "COUNTED_STEPS", 1)
        patched.setattr(lengthening, "MEASURED", RingCosts(join=1e-2, send=1e-5, hop=1e-3))
        yield
