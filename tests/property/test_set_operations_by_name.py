"""UNION, INTERSECT and EXCEPT of queries that run by their names are DuckDB's, while these queries migrate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.property.cases import LARGEST, cuts, migrations, rescales, restarts, shapes
from tests.property.drive import Case, check
from tests.property.features.set_operations import expected_of, together
from tests.property.rows import cut, draw_rows
from tests.property.test_answers_as_streams import SETTINGS

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


@drawing(300)
@given(data=st.data(), **SETTINGS)
def test_set_operations(data: st.DataObject, lanes: int, sharing: str) -> None:
    declared, sequence = draw_rows(data.draw(shapes(3, LARGEST[5])))
    steps = cut(declared, sequence, data.draw(cuts()))
    spec = data.draw(together())
    alone = tuple(Lifetime(f"part{n}", part) for n, part in enumerate(spec.parts))
    spec = replace(spec, named=tuple(query.name for query in alone))
    case = Case(declared, steps, (*alone, Lifetime("q", spec)))
    whole, answers = expected_of(case, spec, alone)
    joins = tuple(query for query in alone if len(query.spec.sources) > 1)
    moves = data.draw(migrations(replace(case, queries=joins))) if joins else ()
    actions = [*moves, *data.draw(rescales(case)), *data.draw(restarts(case, most=1))]
    check(case, {"q": whole, **answers}, {}, actions, lanes=lanes, sharing=sharing)
