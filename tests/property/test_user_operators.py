"""Invariant 8: a user's operator gives the same answers whatever becomes of the plan below it and of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.property.cases import Drawn, cases, migrations, restarts
from tests.property.drive import Action, Migrate, Run, _act, start
from tests.property.queries import plans

pytestmark = pytest.mark.property
HERE = "tests.unit.embedded.user_operators"
FEEDING = ("gms", "gpt", "ghm")
MOST_RESULTS = 300
done: Counter[str] = Counter()


def answers(drawn: Drawn, kind: str, plan: str | None, actions: Sequence[Action]) -> tuple[list[Any], Run]:
    """What the operator says in each step, but for its name."""
    query = drawn.case.queries[0]
    engine = start(drawn.case.streams)
    engine.add_query("q0", query.spec.cql(), plan, operator=f"{HERE}:{kind}", operator_options={"by": "first"})
    found, said = Run(engine), []
    for number, step in enumerate(drawn.case.steps):
        for action in actions:
            if action.step == number:
                engine = _act(engine, action, step, found)
        said.append(engine.push(dict(step))["q0"].drop_columns(["by"]).to_pylist())
    found.engine = engine
    return said, found


@st.composite
def hand_overs(draw: st.DrawFn, drawn: Drawn, kinds: Sequence[str]) -> tuple[Migrate, ...]:
    """One to three hand-overs, some with another plan."""
    query, found = drawn.case.queries[0], []
    for number in range(draw(st.integers(1, 3))):
        strategy = draw(st.sampled_from(FEEDING))
        options: dict[str, Any] = {"budget": draw(st.sampled_from((1, 5, 1000)))} if strategy == "ghm" else {}
        options |= {
            "operator": f"{HERE}:{draw(st.sampled_from(kinds))}",
            "operator_options": {"by": f"number {number}"},
        }
        plan = draw(plans(query.spec)) if draw(st.booleans()) else ""
        step = draw(st.integers(0, len(drawn.case.steps) - 1))
        found.append(Migrate(step, "q0", plan, strategy, options))
    return tuple(found)


@drawing(150, soak=14, shrink=True)
@given(st.data())
def test_neither_migrations_nor_hand_overs_nor_restarts_show(data: st.DataObject) -> None:
    drawn = data.draw(cases(kinds=("join", "join", "single"), rows_windows=False, idle=True, sources=4))
    assume(drawn.expected["q0"].table.num_rows <= MOST_RESULTS)
    kinds = data.draw(st.sampled_from((("Alive", "Packed"), ("Longer",))))
    moves = data.draw(hand_overs(drawn, kinds), label="hand-overs")
    below = data.draw(migrations(drawn.case, 2), label="migrations") if data.draw(st.booleans()) else ()
    anew = data.draw(restarts(drawn.case), label="restarts") if data.draw(st.booleans()) else ()
    first = data.draw(plans(drawn.case.queries[0].spec), label="plan")
    expected, _ = answers(drawn, kinds[0], None, ())
    said, found = answers(drawn, kinds[0], first, (*below, *moves, *anew))
    assert said == expected
    fed = Counter(row["row"] for step in said for row in step)
    assert sum(fed.values()) == drawn.expected["q0"].table.num_rows
    done.update(m.strategy for m in moves if m not in found.refused)
    done["handed over"] += found.engine.manifest.queries["q0"].operator["options"]["by"] != "first"  # type: ignore


def test_hand_overs_were_exercised() -> None:
    """Runs after the test above, which would pass if all were refused."""
    if sum(done.values()) > 60:
        assert {name for name in FEEDING if not done[name]} == set()
        assert done["handed over"] > 20
