"""A course: rows in steps, what is done to the engine before each, and the step before which it is saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pyarrow as pa

import midstream as ms
from midstream.model.events import MigrationEnded, StateRebuilt
from tests.oracle.arrival import Step
from tests.property.drive import Rescale, Restart, start
from tests.sharing.case import Action, Add, Case, Change, Drop, Move, Reshare
from tests.sharing.drive import Segment
from tests.sharing.family import Asked

OPERATOR = "tests.checkpoints.operators:Companions"


@dataclass(frozen=True)
class HandOver:
    """Before a step: carry an operated query to another operator, and perhaps to another plan."""

    step: int
    strategy: str
    plan: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Operated:
    """A query with `Companions` on top, from the first step on."""

    query: str
    asked: Asked
    hand_overs: tuple[HandOver, ...]


@dataclass(frozen=True)
class Course:
    """A case that is saved before the step `saved`, with the commands of that step waiting.

    In the saved engine the migrations of the queries `under_way` are not done.
    """

    case: Case
    saved: int
    under_way: frozenset[str] = frozenset()
    operated: tuple[Operated, ...] = ()

    def begin(self) -> ms.Engine:
        """An engine that knows the streams."""
        return start(self.case.streams, lanes=self.case.lanes, sharing=self.case.sharing)

    def command(self, engine: ms.Engine, step: int) -> None:
        """Do what is done before a step; nothing may be refused."""
        for action in self.case.actions:
            if action.step == step:
                _act(engine, action)
        for one in self.operated:
            if step == 0:
                spec, options = one.asked.spec, {"by": "the first"}
                engine.add_query(
                    one.query, spec.cql(), plan=one.asked.plan, operator=OPERATOR, operator_options=options
                )
            for move in one.hand_overs:
                if move.step == step:
                    engine.migrate(
                        one.query, move.plan, move.strategy,
                        operator=OPERATOR, operator_options={"by": f"that of step {step}"}, **move.options,
                    )  # fmt: skip

    def run(self, engine: ms.Engine, steps: range, *, commanded: bool = False) -> Iterator[dict[str, pa.Table]]:
        """Push steps, each after its commands; `commanded`: those of the first step wait already."""
        for step in steps:
            if not (commanded and step == steps[0]):
                self.command(engine, step)
            yield engine.push(dict(self.case.steps[step]))

    def segments(self) -> list[Segment]:
        """The queries by their texts, with no answers yet."""
        found: list[Segment] = []
        live: dict[str, Segment] = {}
        for step in range(len(self.case.steps)):
            for action in self.case.actions:
                if action.step != step:
                    continue
                match action:
                    case Add(_, query, asked, history):
                        live[query] = Segment(query, step, asked, history, added=True)
                    case Change(_, query, asked):
                        live[query] = Segment(query, step, asked, True, added=live[query].begin == step)
                    case Drop(_, query):
                        del live[query]
            found += [segment for segment in live.values() if segment.begin == step]
        return found

    def holds_back(self, query: str) -> bool:
        """Whether results may come in later steps than they are due: Zhu's timestamp order (Lemma 2.1)."""
        moves = [action for action in self.case.actions if isinstance(action, Move)]
        return any(move.query == query and move.options.get("hold_new") for move in moves)


def _act(engine: ms.Engine, action: Action) -> None:
    match action:
        case Add(_, query, asked, history):
            engine.add_query(query, asked.spec.cql(), plan=asked.plan, history=history)
        case Drop(_, query):
            engine.drop_query(query)
        case Change(_, query, asked):
            engine.change_query(query, asked.spec.cql())
        case Move(_, query, plan, strategy, options, together):
            engine.migrate(query, plan, strategy, together=together, **options)
        case Reshare(_, sharing):
            engine.reshare(sharing)
        case Rescale(_, lanes):
            engine.rescale(lanes)
        case Restart():
            raise TypeError("a course restarts where it is saved")


def fingerprint(steps: tuple[Step, ...]) -> str:
    """A digest of all rows, by which input that is drawn otherwise than it was is known."""
    text = repr([{name: table.to_pydict() for name, table in sorted(step.items())} for step in steps])
    return f"{crc32(text.encode()):08x}"


def ended(engine: ms.Engine) -> list[list[str]]:
    """The migrations that have come to their end, as pairs of a query and a strategy."""
    return sorted([e.query, e.strategy] for e in engine.events if isinstance(e, MigrationEnded))


def rebuilt(engine: ms.Engine, since: int) -> list[list[str]]:
    """The states that had to be computed again from base rows, since a step."""
    return sorted([e.lane, e.state] for e in engine.events if isinstance(e, StateRebuilt) and e.step >= since)
