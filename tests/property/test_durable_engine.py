"""Invariant 5, an engine on a checkpoint: taken up between steps or after it died amid one, no answer changes.

What is compared is what stands in the sinks; and what a push returned is what stands there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import midstream as ms
from midstream.embedded import processes
from midstream.pipeline.crash_points import POINTS, CrashPoint
from midstream.storage.memory_limit import MemoryLimit
from tests.drawing import drawing
from tests.oracle.compare import assert_each_step_same, difference
from tests.property.cases import cases, migrations, rescales, restarts
from tests.property.drive import Action, Case, Migrate, Rescale, Restart, script
from tests.property.queries import plans

pytestmark = pytest.mark.property


class Died(BaseException):
    """The process would be dead now."""


@drawing(40, shrink=True)
@given(st.data())
def test_engines_on_a_checkpoint_change_no_answer(data: st.DataObject) -> None:
    drawn = data.draw(cases(count=data.draw(st.sampled_from((1, 1, 2))), idle=True))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    moves = data.draw(migrations(drawn.case, 2)) if data.draw(st.booleans()) else ()
    actions = data.draw(
        st.permutations((*data.draw(restarts(drawn.case)), *moves, *data.draw(rescales(drawn.case, 1))))
    )
    points = data.draw(st.lists(st.sampled_from(POINTS), min_size=1, max_size=4), label="points")
    lanes = data.draw(st.sampled_from((1, 2, 3)))
    limited = data.draw(st.booleans(), label="near a limit of memory")
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = in_the_sinks(drawn.case, first, actions, points, lanes, Path(folder), limited=limited)
            for name, answer in drawn.expected.items():
                assert_each_step_same(found[name], answer, name)
        except Exception:
            note(f"dying at {points}, lanes {lanes}\n" + script(drawn.case, first, actions, lanes=lanes))
            raise


@pytest.mark.verify
@drawing(8)
@given(st.data())
def test_worker_processes_change_no_answer(data: st.DataObject) -> None:
    """Lanes run in other processes, except in the steps that rescale; also where the engine dies."""
    drawn = data.draw(cases(count=data.draw(st.sampled_from((1, 2))), idle=True))
    first = {query.name: data.draw(plans(query.spec), label="plan") for query in drawn.case.queries}
    deaths, moves = data.draw(restarts(drawn.case)), data.draw(migrations(drawn.case, 2))
    actions = data.draw(st.permutations((*deaths[:1], *moves, *data.draw(rescales(drawn.case, 1)))))
    points = [data.draw(st.sampled_from(POINTS), label="point")]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(processes, "LEAST_ROWS", 0)
        found = in_the_sinks(drawn.case, first, actions, points, 3, Path(folder), workers=2)
        for name, answer in drawn.expected.items():
            assert_each_step_same(found[name], answer, name)


def in_the_sinks(
    case: Case,
    first: dict[str, str],
    actions: Sequence[Action],
    points: list[str],
    lanes: int,
    root: Path,
    *,
    limited: bool = False,
    workers: int | None = None,
) -> dict[str, list[pa.Table | None]]:
    """Run a case on a checkpoint; at a restart that is a crash, the engine dies at one of the points of the step."""
    deaths = {action.step: action for action in actions if isinstance(action, Restart)}
    engine = opened(case, root, lanes, limited=limited, workers=workers)
    returned: dict[tuple[str, int], pa.Table] = {}
    for number, tables in enumerate(case.steps):
        for query in case.queries:
            if query.until == number and query.since < number:
                engine.drop_query(query.name)
            if query.since == number and query.until != number:
                engine.add_query(query.name, query.spec.cql(), first[query.name], history=False)
        for action in actions:
            if action.step == number and isinstance(action, Rescale):
                engine.rescale(action.lanes)
            elif action.step == number and isinstance(action, Migrate):
                try:
                    engine.migrate(action.query, action.plan, action.strategy, **action.options)
                except ms.StrategyError:
                    continue
        if number in deaths:
            if deaths[number].crash:
                die(engine, points[number % len(points)], tables)
            else:
                engine.close()
            engine = opened(case, root, None, take_over=True, limited=limited, workers=workers)
        if engine.manifest.step < number:
            for name, table in engine.push(dict(tables)).items():
                returned[name, number] = table
    engine.close()
    found = {query.name: sink(root / "checkpoint" / "results" / query.name, len(case.steps)) for query in case.queries}
    for (name, number), table in returned.items():
        stands = found[name][number]
        assert not difference(table.slice(0, 0) if stands is None else stands, table), (name, number)
    return found


def opened(
    case: Case,
    root: Path,
    lanes: int | None,
    *,
    take_over: bool = False,
    sharing: str | None = None,
    limited: bool = False,
    workers: int | None = None,
) -> ms.Engine:
    # Near the limit every chunk is mapped as soon as it is written.
    memory = MemoryLimit(1).held() + (64 << 20) if limited else None
    engine = ms.Engine(
        lanes=lanes,
        sharing=sharing,
        checkpoint=root / "checkpoint",
        take_over=take_over,
        durable=False,
        memory=memory,
        workers=workers,
    )
    for spec in case.streams:
        engine.create_stream(
            spec.name,
            spec.schema,
            spec.timestamp,
            lateness=spec.lateness,
            idle_timeout=spec.idle_timeout,
            unit=spec.unit,
        )
    return engine


def die(engine: ms.Engine, at: str, tables: dict[str, pa.Table]) -> None:
    """Push, and have the engine come no further than the point."""

    def reach(self: CrashPoint, point: str, step: int) -> None:
        if point == at:
            raise Died

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Died):
        patched.setattr(CrashPoint, "reach", reach)
        engine.push(dict(tables))


def sink(folder: Path, steps: int) -> list[pa.Table | None]:
    folders = [folder / f"step={step:08d}" for step in range(steps)]
    return [pq.read_table(one) if one.is_dir() else None for one in folders]
