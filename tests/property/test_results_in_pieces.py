"""Results that go to their sinks in pieces are those that a step would give back, in order of time, and cost the same.

Pieces are of a few rows here. The oracle says what is answered, and an engine that returns its results what is counted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import midstream as ms
from midstream.model.window import EVENT_TIME
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import AgeRuns, PieceSizes
from midstream.state.combinations import Combinations
from midstream.units.unit_step import Poured
from tests.drawing import drawing
from tests.oracle.compare import assert_each_step_same
from tests.property.cases import Drawn, cases, migrations
from tests.property.drive import Action, Case, Migrate, run, script
from tests.property.queries import plans
from tests.property.test_durable_engine import opened, sink

pytestmark = [pytest.mark.property, pytest.mark.timeout(600)]

IN_MEMORY = os.environ.get("PYTEST_DEBUG_TEMPROOT")
"""Where folders of tests are in memory, if they are."""


@drawing(100, shrink=True)
@given(st.data())
def test_results_in_pieces_are_the_results(data: st.DataObject) -> None:
    drawn = data.draw(cases(kinds=("join",), count=data.draw(st.sampled_from((1, 2, 1)))))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    actions = data.draw(migrations(drawn.case, 2)) if data.draw(st.booleans()) else ()
    most = data.draw(st.sampled_from((3, 1, 20)), label="most")
    sharing = data.draw(st.sampled_from(("auto", "off")), label="sharing")
    try:
        assert_same_in_pieces(drawn, first, actions, most, sharing)
    except Exception:
        note(f"pieces of {most}, sharing {sharing}\n" + script(drawn.case, first, actions))
        raise


def assert_same_in_pieces(
    drawn: Drawn, first: dict[str, str], actions: Sequence[Action], most: int, sharing: str
) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, of_at_most(most):
        engine = opened(drawn.case, Path(folder), 1, sharing=sharing)
        push_all(engine, drawn.case, first, actions)
        engine.close()
        for query in drawn.case.queries:
            found = sink(Path(folder) / "checkpoint" / "results" / query.name, len(drawn.case.steps))
            assert_each_step_same(found, drawn.expected[query.name], query.name)
    whole = run(drawn.case, first, actions, sharing=sharing).engine
    assert engine.manifest.totals == whole.manifest.totals
    assert engine.manifest.operators == whole.manifest.operators


def push_all(engine: ms.Engine, case: Case, first: dict[str, str], actions: Sequence[Action]) -> None:
    for number, tables in enumerate(case.steps):
        for query in case.queries:
            if query.since == number:
                engine.add_query(query.name, query.spec.cql(), first[query.name], history=False)
        for action in actions:
            if action.step == number and isinstance(action, Migrate):
                try:
                    engine.migrate(action.query, action.plan, action.strategy, **action.options)
                except ms.StrategyError:
                    continue
        assert engine.push(dict(tables), returns=False) == {}


@contextmanager
def of_at_most(most: int) -> Iterator[None]:
    """Have pieces be of so many rows, and see that each comes in order of time after the one before."""
    take, last = Poured.take, dict[int, int]()

    def watched(self: Poured, found: Combinations, age_runs: AgeRuns) -> None:
        times = found.valid_from[EVENT_TIME]
        if len(times):
            assert last.get(id(self), int(times.min())) <= int(times.min()), "a piece is before the one before it"
            last[id(self)] = int(times.max())
        take(self, found, age_runs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(piece_writer, "SIZES", PieceSizes(most, most))  # Parts are for steps that join fewer pairs.
        patched.setattr(Poured, "take", watched)
        yield
