"""Invariant 1: the same answer for every plan of a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.property.cases import cases
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_every_plan_gives_the_same_answer(data: st.DataObject) -> None:
    drawn = data.draw(cases())
    chosen = [data.draw(plans(drawn.spec()), label="plan") for _ in range(2)]
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    for plan in (None, *dict.fromkeys(chosen)):
        given_plans = {"q0": plan} if plan is not None else None
        check(drawn.case, drawn.expected, given_plans, sharing=sharing, label=f"plan {plan}")
