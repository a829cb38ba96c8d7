"""Equal signature, equal content: one state id holds the same rows whatever plan or migration has made them.

Queries of several windows and filters share the plan, so that its joins find combinations that no query needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

import midstream as ms
from midstream.migration.strategy_contract import strategies
from midstream.model.events import StepDone
from midstream.model.ids import LaneId, StateId
from tests.property.drive import start
from tests.property.rows import Shape, cut, draw_rows
from tests.sharing.plain import asked

STREAMS, ROWS = draw_rows(Shape(seed=5, sizes=(40,) * 4, span=16, keys=4, disorder=3, slack=2))
STEPS = cut(STREAMS, ROWS, (15, 30, 45, 60, 75, 90))
QUERIES = {
    "short": asked("ABCD", 2, "A.n > 1"),
    "long": asked("ABCD", 5, "B.n > 1"),
    "all": asked("ABCD", 1),
    "some": asked("ABCD", 3, "A.n > 0", "C.n > 0"),
}
BEGIN = 3
"""The step before which migrations begin: so many old rows that some of their combinations are needed by nobody."""

LEFT, RIGHT = "(((A B) C) D)", "((A (B C)) D)"
FORMS = {
    "tree": LEFT,
    "other tree": RIGHT,
    "bushy": "((A B) (C D))",
    "stairs": f"stairs({LEFT})",
    "other stairs": f"stairs({RIGHT})",
    "orders": "[A: B C D | B: A C D | C: A B D | D: A B C]",
    "eddy by lottery": "eddy:lottery(A B C D)",
    "eddy by rank": "eddy:rank(A B C D)",
}

Content = dict[tuple[LaneId, StateId], Counter[tuple[tuple[str, int], ...]]]
"""By lane and state id, the combinations with their lifetimes."""


@dataclass(frozen=True)
class Move:
    """A migration of the plan that all queries share."""

    strategy: str
    old: str
    new: str
    options: Mapping[str, Any] = field(default_factory=dict)


WAYS = [(old, new) for old in ("tree", "stairs", "orders") for new in ("other tree", "bushy", "other stairs")]
MOVES = [
    *(Move(strategy, old, new) for strategy in (*strategies(), "auto") for old, new in WAYS),
    *(Move(name, "tree", "other tree", {"background": pairs}) for name in ("hybmig", "jisc") for pairs in (5, 5000)),
    Move("ghm", "tree", "other tree", {"budget": 5}),
    Move("m_join", "tree", "orders"),
    Move("cacq", "tree", "eddy by rank"),
]


@pytest.mark.parametrize("form", FORMS)
def test_under_every_form_of_plan(form: str) -> None:
    shared = 0
    for other in FORMS:
        for step, (one, another) in enumerate(zip(undisturbed(form), undisturbed(other), strict=True)):
            for state in one.keys() & another.keys():
                assert one[state] == another[state], f"{state} in step {step}, against {other}"
                shared += form != other
    assert shared > len(FORMS)


@pytest.mark.parametrize("strategy", [*strategies(), "auto"])
def test_while_a_migration_is_under_way_and_after(strategy: str) -> None:
    compared = 0
    for move in (move for move in MOVES if move.strategy == strategy):
        try:
            found = run(FORMS[move.old], move)
        except ms.StrategyError:
            continue
        for step, content in enumerate(found):
            for state in content.keys() & known()[step].keys():
                assert content[state] == known()[step][state], f"{state} in step {step} of {move}"
                compared += 1
    assert compared or strategy == "pause_drain_resume"


@pytest.mark.parametrize("strategy", ["ghm", "gpt", "hybmig", "parallel_track"])
def test_of_a_state_that_is_lost_while_a_migration_is_under_way(strategy: str) -> None:
    """It is computed again from what lies below, through the plans in transition."""
    move = Move(strategy, "tree", "other tree", {"budget": 2} if strategy == "ghm" else {})
    found = run(FORMS[move.old], move, lost_before=BEGIN + 1)
    rebuilt = 0
    for step, content in enumerate(found):
        for state in content.keys() & known()[step].keys():
            assert content[state] == known()[step][state], f"{state} in step {step}"
            rebuilt += step == BEGIN + 1 and len(content[state])
    assert rebuilt


@cache
def known() -> list[Content]:
    """The states of all undisturbed runs after each step."""
    return [
        {state: content for form in FORMS for state, content in undisturbed(form)[step].items()}
        for step in range(len(STEPS))
    ]


@cache
def undisturbed(form: str) -> list[Content]:
    """The states after each step of a run with no migration."""
    return run(FORMS[form])


def run(plan: str, move: Move | None = None, lost_before: int | None = None) -> list[Content]:
    """The states after each step; a migration begins before one, and before one states are lost."""
    engine = start(STREAMS)
    for name, query in QUERIES.items():
        engine.add_query(name, query.spec.cql(), plan=plan)
    found = []
    for number, step in enumerate(STEPS):
        if move is not None and number == BEGIN:
            engine.migrate("all", FORMS[move.new], move.strategy, together=True, **move.options)
        if number == lost_before:
            for lane, state in found[-1].keys() & known()[number - 1].keys():
                for chunk in engine.manifest.lane_states[lane].states[state].chunks:
                    engine._store._chunks.pop(chunk.name)
        engine.push(dict(step))
        found.append(content_of(engine))
    return found


def content_of(engine: ms.Engine) -> Content:
    """The living rows of every join state.

    A row that can be joined no more may stay for a while, or not; so only those count that outlive every watermark.
    """
    done = next(event for event in reversed(engine.events) if isinstance(event, StepDone))
    bound = max(time for time in done.watermarks.values() if time is not None)
    found: Content = {}
    for lane, state in engine.manifest.lane_states.items():
        for name, listing in state.states.items():
            batches = [engine._store.get(chunk) for chunk in listing.chunks]
            if not batches or "until:ts" not in batches[0].schema.names:
                continue
            rows = (row for batch in batches for row in batch.to_pylist() if row["until:ts"] >= bound)
            found[lane, name] = Counter(
                tuple((key, value) for key, value in row.items() if key != "code") for row in rows
            )
    return found
