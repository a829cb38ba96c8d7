"""Invariant 4: the same answer when queries come and go beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.compare import difference
from tests.property.cases import cases, migrations, twins
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_queries_come_and_go_beside_a_query(data: st.DataObject) -> None:
    """Each query answers what the oracle says, and the one that stays answers what it would alone."""
    drawn = data.draw(cases(count=data.draw(st.integers(1, 3)), least=data.draw(st.integers(2, 3)), come_and_go=True))
    if data.draw(st.integers(0, 3), label="twin"):
        since = data.draw(st.sampled_from((0, 0, *range(len(drawn.case.steps)))))
        drawn = drawn.with_twin(data.draw(twins(drawn.spec())), since)
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    actions = data.draw(migrations(drawn.case, 2), label="migrations") if data.draw(st.booleans()) else ()
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    lanes = data.draw(st.sampled_from((1, 1, 3)), label="lanes")
    found = check(drawn.case, drawn.expected, first, actions, sharing=sharing, lanes=lanes)
    if actions:
        return  # a strategy may put a result out in a later step
    alone = check(drawn.alone(), {"q0": drawn.expected["q0"]}, first, sharing=sharing, lanes=lanes, label="alone")
    assert len(found.outputs["q0"]) == len(alone.outputs["q0"])
    for step, (one, other) in enumerate(zip(found.outputs["q0"], alone.outputs["q0"], strict=True)):
        problem = difference(one, other, drawn.expected["q0"].approximate)
        assert not problem, f"step {step}: {problem}"
