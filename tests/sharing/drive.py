"""Run an engine through a case and note, for every query, what it put out and what it was said to see."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import midstream as ms
from midstream.model.events import Event
from tests.oracle.arrival import Step
from tests.property.drive import Rescale, Restart, start
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.family import Asked


@dataclass
class Segment:
    """A query by one text: from the step it begins with, one table for each; `event` says what it sees."""

    query: str
    begin: int
    asked: Asked
    history: bool
    added: bool
    tables: list[pa.Table] = field(default_factory=list)
    event: Event | None = None

    @property
    def end(self) -> int:
        """The step after its last."""
        return self.begin + len(self.tables)


@dataclass
class Run:
    """What came out: the segments in their order, the engine at the end, and what it refused to do."""

    engine: ms.Engine
    segments: list[Segment] = field(default_factory=list)
    refused: list[tuple[Action, str]] = field(default_factory=list)


Watch = Callable[[ms.Engine, int], None]


def run(case: Case, watch: Watch | None = None, last: int | None = None) -> Run:
    """Push all steps (or those before `last`); `watch` sees the engine after each."""
    engine = start(case.streams, lanes=case.lanes, sharing=case.sharing)
    found = Run(engine)
    live: dict[str, Segment] = {}
    for number, step in enumerate(case.steps if last is None else case.steps[:last]):
        for action in case.actions:
            if action.step == number:
                engine = _act(engine, action, step, live, found)
        results = engine.push(dict(step))
        assert results.keys() == live.keys(), f"step {number}: answers of {sorted(results)}, not of {sorted(live)}"
        events = {
            (str(getattr(e, "query", "")), e.kind): e
            for e in engine.events
            if e.step == number and e.kind in ("query_added", "query_changed")
        }
        refusals = [e for e in engine.events if e.step == number and e.kind == "command_refused"]
        assert not refusals, f"step {number}: refused only when it was due: {refusals}"
        for name, segment in live.items():
            segment.tables.append(results[name])
            if segment.begin == number:
                segment.event = events.get((name, "query_changed")) or events.get((name, "query_added"))
                found.segments.append(segment)
        if watch:
            watch(engine, number)
    found.engine = engine
    return found


def _act(engine: ms.Engine, action: Action, step: Step, live: dict[str, Segment], found: Run) -> ms.Engine:
    match action:
        case Add(number, query, asked, history):
            if query not in live:
                try:
                    engine.add_query(query, asked.spec.cql(), plan=asked.plan, history=history)
                except ms.QueryError as error:
                    _only_parts(error)
                    found.refused.append((action, str(error)))
                else:
                    live[query] = Segment(query, number, asked, history, added=True)
        case Drop(_, query):
            if query in live:
                engine.drop_query(query)
                del live[query]
        case Change(number, query, asked):
            if query in live:
                try:
                    engine.change_query(query, asked.spec.cql())
                except ms.MidstreamError as error:
                    found.refused.append((action, str(error)))
                else:
                    old = live[query]
                    # What a change asks for is looked for in all that is held, however the query began.
                    live[query] = Segment(query, number, asked, True, added=old.added and old.begin == number)
        case Move(_, query, plan, strategy, options, together):
            if query in live:
                try:
                    more = {"together": True} if together else {}
                    engine.migrate(query, plan=plan, strategy=strategy, **more, **options)
                except ms.StrategyError as error:
                    found.refused.append((action, str(error)))
        case Reshare(_, sharing):
            try:
                engine.reshare(sharing)
            except ms.QueryError as error:
                _only_parts(error)
                found.refused.append((action, str(error)))
        case Rescale(_, lanes):
            engine.rescale(lanes=lanes)
        case Restart(_, crash):
            return _restart(engine, crash, step)
    return engine


def _only_parts(error: ms.QueryError) -> None:
    """Nothing may be refused but what push_down would need too many joins for."""
    if "push_down would need" not in str(error):
        raise error


def _restart(engine: ms.Engine, crash: bool, step: Step) -> ms.Engine:
    folder = Path(tempfile.mkdtemp(prefix="midstream-test-"))
    try:
        engine.save(folder / "saved")
        if crash:
            engine.push(dict(step))
        return ms.Engine.load(folder / "saved")
    finally:
        shutil.rmtree(folder)
