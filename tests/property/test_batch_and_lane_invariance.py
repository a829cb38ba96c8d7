"""Invariant 3: the same answer for every batch size and number of lanes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.property.cases import cases, cuts, rescales
from tests.property.drive import check
from tests.property.queries import plans
from tests.property.rows import cut

pytestmark = pytest.mark.property


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_cuts_and_lanes_change_no_answer(data: st.DataObject) -> None:
    """In order, rows may be cut anywhere; out of order too if none is late and no join counts rows as they arrive."""
    order = data.draw(st.sampled_from(("in", "timely")), label="order")
    drawn = data.draw(cases(order=order, rows_windows=order == "in"))
    plan = {"q0": data.draw(plans(drawn.spec()), label="plan")}
    for manner in ("cuts", "other cuts"):
        places = data.draw(cuts(), label=manner)
        case = replace(drawn.case, steps=cut(drawn.case.streams, drawn.sequence, places, bare=data.draw(st.booleans())))
        lanes = data.draw(st.sampled_from((1, 2, 3, 7, 40)), label="lanes")
        actions = data.draw(rescales(case), label="rescales")
        check(case, drawn.expected, plan, actions, lanes=lanes, label=f"cuts {places}")
