"""Aggregates over the results of joins, with FILTER and HAVING: by any plan and sharing what DuckDB has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.property.cases import cases
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


@drawing(200)
@given(st.data())
def test_groups_are_those_of_the_oracle(data: st.DataObject) -> None:
    drawn = data.draw(cases(kinds=("aggregate",)))
    plan = data.draw(st.one_of(st.none(), plans(drawn.spec())), label="plan")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    check(drawn.case, drawn.expected, {} if plan is None else {"q0": plan}, sharing=sharing, label=f"plan {plan}")
