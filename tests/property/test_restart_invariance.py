"""Invariant 5, embedded: the same answer after a crash at any point and a restart. (On Spark: tests/spark.)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.property.cases import cases, migrations, rescales, restarts
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_restarts_change_no_answer(data: st.DataObject) -> None:
    """Restarts between steps and amid them, before and after a migration or a rescale is asked for."""
    drawn = data.draw(cases(count=data.draw(st.sampled_from((1, 1, 2))), idle=True))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    moves = data.draw(migrations(drawn.case, 2)) if data.draw(st.booleans()) else ()
    actions = data.draw(
        st.permutations((*data.draw(restarts(drawn.case)), *moves, *data.draw(rescales(drawn.case, 1))))
    )
    check(drawn.case, drawn.expected, first, actions, lanes=data.draw(st.sampled_from((1, 2, 3))))
