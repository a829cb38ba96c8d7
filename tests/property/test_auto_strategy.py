"""`strategy="auto"`: whatever is chosen gives the same answer, and whatever is foreseen is a number."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.model.events import MigrationBegun
from midstream.optimizer.chooser import OBJECTIVES
from tests.drawing import drawing
from tests.property.cases import cases, migrations, rescales
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property
KINDS = ("join", "join", "join", "aggregate", "difference", "single")


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_the_choice_changes_no_answer(data: st.DataObject) -> None:
    drawn = data.draw(cases(kinds=KINDS, count=data.draw(st.sampled_from((1, 1, 2))), least=2, idle=True))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    objectives = st.sampled_from(sorted(OBJECTIVES))
    moves = [
        replace(move, strategy="auto", options={"objective": data.draw(objectives, label="objective")})
        for move in data.draw(migrations(drawn.case), label="migrations")
    ]
    actions = [*moves, *data.draw(rescales(drawn.case), label="rescales")]
    found = check(drawn.case, drawn.expected, first, actions)
    for event in found.engine.events:
        if isinstance(event, MigrationBegun):
            foreseen = [one["predicted"] for one in event.detail["considered"] if one["predicted"]]
            assert foreseen
            assert all(isfinite(figure) and figure >= 0 for one in foreseen for figure in one.values())
