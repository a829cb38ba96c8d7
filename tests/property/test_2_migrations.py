"""Invariant 2: the same answer with no migration, one, many, overlapping; by any strategy, begun at any step."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.property.cases import cases, migrations, strategies
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property
done: Counter[str] = Counter()


@given(st.data())
def test_migrations_change_no_answer(data: st.DataObject) -> None:
    drawn = data.draw(cases(count=data.draw(st.sampled_from((1, 1, 2))), idle=True))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    actions = data.draw(migrations(drawn.case), label="migrations")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    found = check(drawn.case, drawn.expected, first, actions, sharing=sharing)
    for action in actions:
        done[f"{action.strategy} {'refused' if action in found.refused else 'done'}"] += 1
        event(f"{action.strategy} {'refused' if action in found.refused else 'done'}")


def test_every_strategy_was_exercised() -> None:
    """Runs after the test above: a strategy that always refuses would pass it."""
    if done:
        assert {name for name in strategies() if not done[f"{name} done"]} == set()
