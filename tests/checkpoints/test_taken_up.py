"""A checkpoint that earlier code wrote is taken up and goes on exact, whatever was under way when it was written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.migration.discovery import strategies
from midstream.model.events import QueryAdded, QueryChanged
from tests.checkpoints import operators as operators  # what a program has imported may be made
from tests.checkpoints.course import Course, Operated, ended, fingerprint, rebuilt
from tests.checkpoints.courses import courses
from tests.checkpoints.kept import Kept, archive, unpack
from tests.conformance.expected import Expected
from tests.oracle.arrival import Arrivals, Lifetime, arrive
from tests.oracle.compare import difference
from tests.oracle.spec import Item
from tests.sharing.case import Move
from tests.sharing.draw import MODES
from tests.sharing.drive import Run, Segment
from tests.sharing.judge import Judge, due, said

Outputs = dict[str, dict[int, pa.Table]]

COURSES = courses()
every_course = pytest.mark.parametrize("name", COURSES)


@dataclass(frozen=True)
class TakenUp:
    """A kept checkpoint, loaded and run to the end of its course: the engine then, and what it answered since."""

    course: Course
    kept: Kept
    engine: ms.Engine
    found: Outputs


@pytest.fixture(scope="module", params=COURSES)
def taken_up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TakenUp:
    course, kept = COURSES[request.param], unpack(request.param, tmp_path_factory.mktemp("kept"))
    assert fingerprint(course.case.steps) == kept.notes["input"], "the rows are no longer those it was made of"
    engine = ms.Engine.load(kept.checkpoint)
    assert engine.manifest.step == course.saved - 1
    return TakenUp(course, kept, engine, go_on(course, engine))


def test_it_answers_as_the_code_that_wrote_it(taken_up: TakenUp) -> None:
    _check_against_the_record(taken_up.course, taken_up.kept, taken_up.found)


def test_it_goes_on_exact(taken_up: TakenUp) -> None:
    """Each step of each query is what the oracle says, also of the steps before: nothing is put out twice or never."""
    course, kept = taken_up.course, taken_up.kept
    whole = {query: {**steps, **taken_up.found.get(query, {})} for query, steps in kept.answers.items()}
    arrivals = check_against_the_oracle(course, whole, taken_up.engine)
    for operated in course.operated:
        _check_operator(course, operated, whole[operated.query], arrivals)


def test_nothing_is_lost_or_computed_again(taken_up: TakenUp) -> None:
    """Migrations come to their end as they did, and no state has to be rebuilt that did not have to be."""
    engine, notes = taken_up.engine, taken_up.kept.notes
    assert ended(engine) == notes["ended"]
    assert not Counter(map(tuple, rebuilt(engine, taken_up.course.saved))) - Counter(map(tuple, notes["rebuilt"]))


@every_course
def test_it_says_how_it_stands(name: str, tmp_path: Path) -> None:
    kept = unpack(name, tmp_path)
    engine = ms.Engine.load(kept.checkpoint)
    queries = engine.manifest.queries
    assert sorted(query for query in queries if engine.migration(query)) == kept.notes["under way"]
    for query in queries:
        for analyze in (False, True):
            assert f"{query}" in engine.explain(query, analyze=analyze)
            assert engine.explain(query, analyze=analyze, format="json")["query"] == query
    metrics = engine.metrics()
    assert (metrics["state_rows"], metrics["comparisons"]) == (kept.notes["state rows"], kept.notes["comparisons"])


@every_course
def test_it_can_be_saved_again_at_once(name: str, tmp_path: Path) -> None:
    """What the present code writes of it goes on as well."""
    course, kept = COURSES[name], unpack(name, tmp_path)
    ms.Engine.load(kept.checkpoint).save(tmp_path / "again")
    _check_against_the_record(course, kept, go_on(course, ms.Engine.load(tmp_path / "again")))


def test_every_strategy_and_every_mode_is_kept() -> None:
    used = {move.strategy for course in COURSES.values() for move in course.case.actions if isinstance(move, Move)}
    assert used == {*strategies(), "auto"}
    assert {f"sharing_{mode}" for mode in MODES} <= COURSES.keys()
    assert all(archive(name).is_file() for name in COURSES)


def go_on(course: Course, engine: ms.Engine) -> Outputs:
    left = range(course.saved, len(course.case.steps))
    found: Outputs = {}
    for step, answers in zip(left, course.run(engine, left, commanded=True), strict=True):
        for query, table in answers.items():
            found.setdefault(query, {})[step] = table
    return found


def _check_against_the_record(course: Course, kept: Kept, found: Outputs) -> None:
    expected = {
        query: {step: table for step, table in steps.items() if step >= course.saved}
        for query, steps in kept.answers.items()
    }
    assert {query: [*steps] for query, steps in found.items()} == {q: [*s] for q, s in expected.items() if s}
    for query, steps in found.items():
        for step, table in steps.items():
            problem = difference(table, expected[query][step])
            assert not problem, f"{query} step {step}: {problem}"
            assert table.schema.types == expected[query][step].schema.types, f"{query} step {step}"


def check_against_the_oracle(course: Course, whole: Outputs, engine: ms.Engine, since: int = 0) -> Arrivals:
    """Judge the answers of the steps from `since` on; those before are of code that may have been wrong."""
    segments = course.segments()
    for segment in segments:
        last = min([s.begin for s in segments if s.query == segment.query and s.begin > segment.begin], default=None)
        steps = [step for step in whole[segment.query] if step >= segment.begin and (last is None or step < last)]
        segment.tables = [whole[segment.query][step] for step in steps]
        events = [e for e in engine.events if isinstance(e, QueryAdded | QueryChanged) and e.query == segment.query]
        segment.event = next(event for event in reversed(events) if event.step == segment.begin)
    arrivals = _arrivals(course, segments)
    for segment in segments if since else ():
        right = due(course.case.streams, arrivals, segment.asked.spec, segment.begin, segment.end, said(segment)[0])
        former = range(segment.begin, min(since, segment.end))
        segment.tables[: len(former)] = [right.by_step(step) for step in former]
    held_back = [segment for segment in segments if course.holds_back(segment.query)]
    judge = Judge(course.case, Run(engine, [segment for segment in segments if segment not in held_back]))
    judge.arrivals = arrivals
    judge.check()
    for segment in held_back:
        answer = due(course.case.streams, arrivals, segment.asked.spec, segment.begin, segment.end, said(segment)[0])
        complete = engine.migration(segment.query) is None
        Expected(answer.answer, segment.end).check_total(segment.tables, complete=complete, label=segment.query)
    for stream in course.case.streams:
        for found, expected in ((engine.late, arrivals.late), (engine.dead_letters, arrivals.dead)):
            rows = found[stream.name]["u"].to_pylist() if stream.name in found else []
            assert rows == expected[stream.name]["u"].to_pylist(), stream.name
    return arrivals


def _arrivals(course: Course, segments: list[Segment]) -> Arrivals:
    lives = [Lifetime(s.query, s.asked.spec, s.begin, s.end) for s in segments]
    lives += [Lifetime(one.query, one.asked.spec) for one in course.operated]
    return arrive(course.case.streams, course.case.steps, lives)


def _check_operator(course: Course, one: Operated, found: dict[int, pa.Table], arrivals: Arrivals) -> None:
    """What it remembers shows in every answer: it is counted here over the rows that the oracle says it was fed."""
    spec = one.asked.spec
    times = [Item(f"{source.alias}.ts", f"time_{source.alias}") for source in spec.sources]
    fed = due(course.case.streams, arrivals, replace(spec, select=(*spec.select, *times)), 0, len(found), "all").answer
    columns = [fed.table[item.name].cast(pa.int64()).to_pylist() for item in times]
    sizes = [source.range or 0 for source in spec.sources]
    ends = [min(time + size for time, size in zip(row, sizes, strict=True)) for row in zip(*columns, strict=True)]
    lifetimes = list(zip(fed.times, ends, fed.steps, strict=True))
    names = [item.name for item in spec.select if item.name]
    texts = ["/".join(map(str, row.values())) for row in fed.table.select(names).to_pylist()]
    for step, answers in found.items():
        expected = Counter(
            (text, time, sum(begin < time <= end and came <= step for begin, end, came in lifetimes))
            for text, (time, _, came_in) in zip(texts, lifetimes, strict=True)
            if came_in == step
        )
        rows = answers.select(["row", "time", "companions"]).to_pylist()
        assert Counter(tuple(row.values()) for row in rows) == expected, f"{one.query} step {step}"
